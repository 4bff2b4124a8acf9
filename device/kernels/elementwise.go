package kernels

import (
	"fmt"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device/kernels/abi"
)

const elementwise = "elementwise"

// FillPattern launches x[i] = Pattern(rank, first+i).
func FillPattern(a *abi.FillArgs) Launch { return each(elementwise, "fill_pattern_f32", a.N) }

// CheckPattern launches a count of the elements that are not PatternSum(rank, ranks,
// first+i): after an AllReduce with Sum over ranks that filled with FillPattern, none.
// The error wraps goccl.ErrInvalid when the sum would not be exact.
func CheckPattern(a *abi.CheckArgs) (Launch, error) {
	if a.Ranks < 1 || a.Ranks > abi.PatternMaxRanks {
		return Launch{}, fmt.Errorf("%w: pattern of %d ranks, want 1 to %d", goccl.ErrInvalid, a.Ranks, abi.PatternMaxRanks)
	}
	return each(elementwise, "check_pattern_f32", a.N), nil
}

// Compare launches a count of the elements of x that are not those of y within the
// tolerance.
func Compare(a *abi.CompareArgs) Launch { return each(elementwise, "compare_f32", a.N) }

// Scale launches x[i] *= factor.
func Scale(a *abi.ScaleArgs) Launch { return each(elementwise, "scale_f32", a.N) }

// Axpy launches y[i] += a*x[i].
func Axpy(a *abi.AxpyArgs) Launch { return each(elementwise, "axpy_f32", a.N) }

// SGD launches a step of gradient descent with momentum:
// velocity = momentum*velocity + grad, then value -= rate*velocity.
func SGD(a *abi.SgdArgs) Launch { return each(elementwise, "sgd_f32", a.N) }

// NoMismatches is what a Mismatches must be before the first kernel that adds to it.
func NoMismatches() abi.Mismatches { return abi.Mismatches{First: ^uint64(0)} }

// Pattern is element i of rank's pattern, as FillPattern writes it: a whole number
// below abi.PatternRange. Ranks closer than abi.PatternRange differ in every element.
func Pattern(rank uint32, i uint64) float32 { return float32(pattern(rank, i)) }

// PatternSum is the sum of Pattern over ranks [rank, rank+ranks), which float32 holds
// exactly for up to abi.PatternMaxRanks ranks.
func PatternSum(rank, ranks uint32, i uint64) float32 {
	var sum uint32
	for r := range ranks {
		sum += pattern(rank+r, i)
	}
	return float32(sum)
}

func pattern(rank uint32, i uint64) uint32 {
	return (uint32((i+1)*0x9e3779b97f4a7c15>>40) + rank*abi.PatternRankStep) % abi.PatternRange
}
