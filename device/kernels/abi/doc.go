// Package abi is what kernels and host share, on the side of Go: structs laid out
// as the kernels see them, enumerations, constants. All but Bytes is generated from
// package table, which says how to add to it; the headers beside the Go files are
// the other side.
//
// Fields of type uint64 whose comment begins with a C pointer type are device
// addresses.
package abi

//go:generate go run ../../../internal/cmd/cu2go abi .
