package hook

import (
	"encoding/binary"
	"math"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/internal/shmem"
)

// span is the memory of a host buffer as bytes.
func span(b device.Buffer) []byte { return shmem.At(b.Addr, b.Bytes()).Bytes() }

// narrow sets dst to scale*src, rounded once to the 16-bit type of dst. src is
// f32 and as long.
func narrow(dst, src device.Buffer, scale float32) {
	out, in := span(dst), span(src)
	round := func(f float32) uint16 { return uint16(goccl.ToBFloat16(f)) }
	if dst.DType == goccl.F16 {
		round = func(f float32) uint16 { return uint16(goccl.ToFloat16(f)) }
	}
	for len(in) >= 4 && len(out) >= 2 {
		f := math.Float32frombits(binary.NativeEndian.Uint32(in))
		binary.NativeEndian.PutUint16(out, round(f*scale))
		in, out = in[4:], out[2:]
	}
}

// widen sets the f32 dst to the values of the 16-bit src, which is as long.
func widen(dst, src device.Buffer) {
	out, in := span(dst), span(src)
	value := func(h uint16) float32 { return goccl.BFloat16(h).Float32() }
	if src.DType == goccl.F16 {
		value = func(h uint16) float32 { return goccl.Float16(h).Float32() }
	}
	for len(out) >= 4 && len(in) >= 2 {
		f := value(binary.NativeEndian.Uint16(in))
		binary.NativeEndian.PutUint32(out, math.Float32bits(f))
		in, out = in[2:], out[4:]
	}
}
