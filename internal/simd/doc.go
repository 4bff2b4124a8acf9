// Package simd reduces, scales and copies raw memory for the host executor.
//
// Operands are addresses and element counts, because the memory may belong to
// the Go heap, to a mapping or to a foreign allocator; the caller keeps it alive
// and mapped. It is never on the stack of a goroutine, which moves. Addresses are
// aligned to the element size. The functions do not block, allocate or check
// their arguments: element type and operation have been validated where the
// program was built, and an undefined pair is a bug of the caller.
//
// # Results
//
// A reduction works strictly left to right, and its bits depend on nothing but
// the operands and their order: not on the level, the alignment, the length, the
// position in the buffer or the processor.
//
//   - Integer Sum and Prod wrap as two's complement.
//   - f32 and f64 round to nearest even after every step.
//   - f16 and bf16 are widened to float32, the whole row is accumulated there, and
//     the result is rounded once to nearest even.
//   - Min and Max of floats return NaN when any operand is NaN; -0 is below +0.
//   - Every NaN that is computed is the positive quiet NaN without payload:
//     0x7fc00000, 0x7ff8000000000000, 0x7e00 (f16), 0x7fc0 (bf16). What is only
//     copied (one source, a division by one) keeps its bits.
//
// # Levels
//
// On amd64 the kernels are assembly, for AVX2 with F16C and for AVX-512 (F, BW,
// DQ, VL), chosen once at start. Other processors, the build tag noasm and race
// builds use plain Go, which is also the reference in the tests; in race builds it
// goes through real slices, so that the detector sees every access.
//
// The assembly is written by the module in gen (avo) and checked in; go generate
// rewrites it byte for byte, and the generator's own test compares (go -C gen test).
//
// # Preemption
//
// Assembly has no safe point, and a loop of assembly calls alone would hold up the
// garbage collector for ever. Every kernel is called through a Go function with a
// frame, whose entry is a safe point, and for at most 64 KiB of each operand, less
// with more than two sources.
package simd

//go:generate go -C gen run . ..
