package table

import "fmt"

// Type is the type of a field on both sides.
type Type struct {
	C, Go       string // as spelled in C++ and Go, of one element
	Size, Align int    // bytes of one element
	Len         int    // elements of an array; 0 when it is none
}

// The fixed-width types; abi/types.h defines the C++ names.
var (
	U8  = Type{C: "u8", Go: "uint8", Size: 1, Align: 1}
	I8  = Type{C: "i8", Go: "int8", Size: 1, Align: 1}
	U16 = Type{C: "u16", Go: "uint16", Size: 2, Align: 2}
	I16 = Type{C: "i16", Go: "int16", Size: 2, Align: 2}
	U32 = Type{C: "u32", Go: "uint32", Size: 4, Align: 4}
	I32 = Type{C: "i32", Go: "int32", Size: 4, Align: 4}
	U64 = Type{C: "u64", Go: "uint64", Size: 8, Align: 8}
	I64 = Type{C: "i64", Go: "int64", Size: 8, Align: 8}
	F32 = Type{C: "float", Go: "float32", Size: 4, Align: 4}
	F64 = Type{C: "double", Go: "float64", Size: 8, Align: 8}
)

// Ptr is the device address of elements of the C++ type elem, for example
// "const float".
func Ptr(elem string) Type { return Type{C: elem + " *", Go: "uint64", Size: 8, Align: 8} }

// Arr is an array of n > 0 elements of t, which is no array itself.
func Arr(t Type, n int) Type {
	t.Len = n
	return t
}

// Type lets s be the type of a field of a later struct.
func (s Struct) Type() Type {
	l := s.Layout()
	return Type{C: s.Name, Go: s.Name, Size: l.Size, Align: l.Align}
}

// Type lets e be the type of a field.
func (e Enum) Type() Type {
	return Type{C: e.Name, Go: e.Name, Size: e.Of.Size, Align: e.Of.Align}
}

// bytes is the size of the whole field.
func (t Type) bytes() int { return t.Size * max(t.Len, 1) }

// c declares name as a field of type t.
func (t Type) c(name string) string {
	sep := " "
	if t.C[len(t.C)-1] == '*' {
		sep = ""
	}
	if t.Len > 0 {
		return fmt.Sprintf("%s%s%s[%d];", t.C, sep, name, t.Len)
	}
	return t.C + sep + name + ";"
}

// golang spells t in Go.
func (t Type) golang() string {
	if t.Len > 0 {
		return fmt.Sprintf("[%d]%s", t.Len, t.Go)
	}
	return t.Go
}
