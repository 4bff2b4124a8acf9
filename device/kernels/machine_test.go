package kernels

import (
	"reflect"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/device/kernels/abi"
)

// machine runs kernels: a GPU, or a CPU that plays one. The tests of what kernels
// compute are written once, for any machine.
type machine interface {
	// alloc returns the address of memory with that content.
	alloc(t *testing.T, content []byte) uint64
	// read copies memory, after all launches so far have ended.
	read(t *testing.T, addr uint64, into []byte)
	// launch runs a kernel with the bytes of its structure.
	launch(t *testing.T, l Launch, args []byte)
}

// memory is a slice in the memory of a machine.
type memory[T any] struct {
	m    machine
	addr uint64
	n    int
}

// put copies a slice to the machine. Memory behind it must stay as it is, which
// get checks.
func put[T any](t *testing.T, m machine, s []T) memory[T] {
	t.Helper()
	content := append(append([]byte{}, bytesOf(s)...), guard...)
	return memory[T]{m: m, addr: m.alloc(t, content), n: len(s)}
}

const guard = "nobody writes behind the end: 40 bytes.."

func (x memory[T]) get(t *testing.T) []T {
	t.Helper()
	var zero T
	b := make([]byte, x.n*int(unsafe.Sizeof(zero))+len(guard))
	x.m.read(t, x.addr, b)
	s := make([]T, x.n)
	n := copy(bytesOf(s), b)
	require.Equal(t, guard, string(b[n:]), "written behind the end")
	return s
}

// bytesOf is the memory of a slice of plain values.
func bytesOf[T any](s []T) []byte {
	var zero T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(zero)))
}

// start launches and checks that the arguments are those of the kernel in the lock.
func start[A any](t *testing.T, m machine, l Launch, err error, args *A) {
	t.Helper()
	require.NoError(t, err)
	require.Equal(t, "abi", reflect.TypeFor[A]().PkgPath()[len(reflect.TypeFor[A]().PkgPath())-3:])
	m.launch(t, l, abi.Bytes(args))
}
