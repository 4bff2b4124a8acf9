package libnccl

import (
	"fmt"

	"github.com/goccl/goccl"
)

// DataType is ncclDataType_t.
type DataType int32

// elements is the number that stands for each element type. The 8-bit floats,
// which NCCL has from 2.24 on and adds on some devices only, are not here: they
// are moved as bytes.
var elements = map[goccl.DType]DataType{
	goccl.I8: 0, goccl.U8: 1, goccl.I32: 2, goccl.U32: 3, goccl.I64: 4, goccl.U64: 5, goccl.F16: 6, goccl.F32: 7, goccl.F64: 8, goccl.BF16: 9,
}

// Byte is the type under which anything is moved.
const Byte DataType = 1

// TypeOf returns NCCL's number for an element type that can be reduced.
func TypeOf(d goccl.DType) (DataType, error) {
	t, ok := elements[d]
	if !ok {
		return 0, fmt.Errorf("%w: NCCL does not reduce %v here; it can be moved", goccl.ErrUnsupported, d)
	}
	return t, nil
}

// MovingTypeOf returns the number under which elements of d are moved.
func MovingTypeOf(d goccl.DType) (DataType, error) {
	if t, ok := elements[d]; ok {
		return t, nil
	}
	if d.Size() == 1 {
		return Byte, nil
	}
	return 0, fmt.Errorf("%w: NCCL knows no element type %v", goccl.ErrUnsupported, d)
}

// RedOp is ncclRedOp_t. Numbers above Avg are operators that RedOpPreMulSum made.
type RedOp int32

// OpOf returns NCCL's number for a reduction without a scale.
func OpOf(op goccl.ReduceOp) (RedOp, error) {
	switch op {
	case goccl.Sum:
		return 0, nil
	case goccl.Prod:
		return 1, nil
	case goccl.Max:
		return 2, nil
	case goccl.Min:
		return 3, nil
	case goccl.Avg:
		return 4, nil
	}
	return 0, fmt.Errorf("%w: NCCL has no number for %v", goccl.ErrUnsupported, op)
}

// UniqueID names a communicator that is about to form: rank 0 makes it, all ranks
// hand it to their Init. It belongs to NCCL's own bootstrap.
type UniqueID [128]byte
