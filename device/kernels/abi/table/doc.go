// Package table describes what kernels and host share: structs, enumerations and
// constants, each written once, as data. From it cu2go writes the C++ header
// abi/NAME.h that kernels include and the Go file abi/NAME.go that hosts use.
//
// Adding a struct takes a few lines in the Group of its topic (a new topic is a
// new file with one Group, and its name in Groups), then
//
//	go generate ./device/kernels/abi
//
// which needs nothing but Go:
//
//	var scale = Struct{Name: "ScaleArgs", Doc: "are the arguments of scale.", Fields: []Field{
//		{Name: "x", Type: Ptr("float"), Doc: "elements, in place"},
//		{Name: "n", Type: U64, Doc: "number of elements"},
//		{Name: "factor", Type: F32},
//	}}
//
// Offsets follow the rules of C. Where those leave a hole, both sides get a field
// in its place: no byte is without a name, and a system on which Go aligns uint64
// to 4 bytes lays the struct out like all others. Both generated files assert
// every size and offset when they are compiled.
//
// Device addresses are pointers in C++ and uint64 in Go: Go never follows them.
package table
