package goccl

import "fmt"

// DType is the element type of a buffer. The zero value is invalid, so that a
// forgotten field is refused and not taken for a float.
type DType uint8

// The element types. F8E4M3 and F8E5M2 can be moved, not reduced.
const (
	F32 DType = iota + 1
	F64
	F16
	BF16
	I8
	U8
	I32
	U32
	I64
	U64
	F8E4M3
	F8E5M2

	numDTypes = iota + 1
)

var dtypeTable = [numDTypes]struct {
	name string
	size int
}{
	F32: {"f32", 4}, F64: {"f64", 8}, F16: {"f16", 2}, BF16: {"bf16", 2},
	I8: {"i8", 1}, U8: {"u8", 1}, I32: {"i32", 4}, U32: {"u32", 4},
	I64: {"i64", 8}, U64: {"u64", 8}, F8E4M3: {"f8e4m3", 1}, F8E5M2: {"f8e5m2", 1},
}

// Valid reports whether d is one of the constants.
func (d DType) Valid() bool { return d > 0 && d < numDTypes }

// Size returns the bytes of one element, 0 for an invalid type.
func (d DType) Size() int {
	if !d.Valid() {
		return 0
	}
	return dtypeTable[d].size
}

// String returns the short name, for example "f32".
func (d DType) String() string {
	if !d.Valid() {
		return fmt.Sprintf("dtype(%d)", uint8(d))
	}
	return dtypeTable[d].name
}

// Float reports whether d is a floating-point type.
func (d DType) Float() bool {
	switch d {
	case F32, F64, F16, BF16, F8E4M3, F8E5M2:
		return true
	}
	return false
}

// Reducible reports whether reductions are defined for d: every type but the
// 8-bit floats, which have too few bits to be summed.
func (d DType) Reducible() bool { return d.Valid() && d != F8E4M3 && d != F8E5M2 }

// ParseDType returns the type with the given short name.
func ParseDType(name string) (DType, error) {
	for d := DType(1); d < numDTypes; d++ {
		if dtypeTable[d].name == name {
			return d, nil
		}
	}
	return 0, fmt.Errorf("%w: no element type is called %q (f32 f64 f16 bf16 i8 u8 i32 u32 i64 u64 f8e4m3 f8e5m2)", ErrInvalid, name)
}

// DTypes lists the types on which reductions are defined, in a fixed order.
func DTypes() []DType { return []DType{F32, F64, F16, BF16, I8, U8, I32, U32, I64, U64} }

// Number is the set of Go types that have a DType. There is no ~: a user's own
// uint16 is not a half.
type Number interface {
	float32 | float64 | Float16 | BFloat16 | int8 | uint8 | int32 | uint32 | int64 | uint64
}

// DTypeOf returns the element type of T. It never fails and costs nothing: the
// compiler knows T.
func DTypeOf[T Number]() DType {
	var z T
	switch any(z).(type) {
	case float32:
		return F32
	case float64:
		return F64
	case Float16:
		return F16
	case BFloat16:
		return BF16
	case int8:
		return I8
	case uint8:
		return U8
	case int32:
		return I32
	case uint32:
		return U32
	case int64:
		return I64
	default:
		return U64
	}
}
