// Package libnccl is NVIDIA's libnccl.so.2 as Go sees it: the library is loaded at
// run time, without cgo, and its functions are called as they are. It knows no
// groups, streams' order or goroutines: package nccl above it does.
//
// It is a package of its own because it is the only part of the backend that
// handles memory layouts: whoever reviews the ABI reads this package, and nothing
// above it imports unsafe.
//
// # Versions
//
// Libraries from 2.20 on, of major version 2, are taken. What changed between
// them lies in two tables: functions (symbols.go) and fields of the
// configuration (fields.go), each with the version that brought it. A field that
// the loaded library does not know is an error that names both versions.
//
// # Threads
//
// NCCL keeps open groups and the current CUDA device per OS thread, so between
// GroupStart and GroupEnd, and between making a device current and a call on a
// Comm, a goroutine holds its thread (runtime.LockOSThread). One thread at a time
// calls functions of a Comm, Abort and AsyncError apart.
package libnccl
