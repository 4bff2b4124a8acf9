//go:build amd64 || arm64

package dl

import (
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
)

func libc(t *testing.T) *Library {
	t.Helper()
	l, err := Open("libnone-goccl.so.9", "libc.so.6")
	require.NoError(t, err)
	require.Equal(t, "libc.so.6", l.Name())
	return l
}

func function(t *testing.T, l *Library, name string) Func {
	t.Helper()
	f, err := l.Lookup(name)
	require.NoError(t, err)
	require.NotZero(t, f)
	return f
}

func TestOpenSaysWhatWasTried(t *testing.T) {
	_, err := Open("libnone-goccl.so.9", "/none/libnone.so")
	require.ErrorIs(t, err, goccl.ErrUnsupported)
	for _, want := range []string{"cannot load libnone-goccl.so.9 or /none/libnone.so", "libnone-goccl.so.9: cannot open shared object file",
		"/none/libnone.so: cannot open shared object file"} {
		require.ErrorContains(t, err, want)
	}
	_, err = Open()
	require.ErrorIs(t, err, goccl.ErrInvalid)
	for _, bad := range []string{"", "a\x00b"} {
		_, err = Open(bad)
		require.ErrorIs(t, err, goccl.ErrInvalid, "%q", bad)
	}
}

func TestOpenGlobalLendsItsSymbols(t *testing.T) {
	l, err := OpenGlobal("libm.so.6")
	require.NoError(t, err)
	require.NotZero(t, function(t, l, "cos"))
}

func TestResolveNamesAllThatIsMissing(t *testing.T) {
	l := libc(t)
	_, err := l.Lookup("no_such_function")
	require.ErrorIs(t, err, goccl.ErrUnsupported)
	require.ErrorContains(t, err, "libc.so.6 has no function no_such_function")

	pid, here, gone, other := Func(0), Func(0), Func(1), Func(1)
	err = l.Resolve([]Symbol{{Name: "getpid", Into: &pid}, {Name: "no_such_a", Into: &gone}, {Name: "no_such_b", Into: &other},
		{Name: "strlen", Into: &here, Optional: true}})
	require.ErrorIs(t, err, goccl.ErrUnsupported)
	require.ErrorContains(t, err, "libc.so.6 lacks no_such_a, no_such_b")
	require.NotZero(t, here)
	require.Zero(t, gone)
	require.Zero(t, other)
	require.EqualValues(t, os.Getpid(), Int32(pid.Call()))

	gone = 1
	require.NoError(t, l.Resolve([]Symbol{{Name: "no_such_a", Into: &gone, Optional: true}}))
	require.Zero(t, gone, "an optional function that is missing is 0")
}

func TestCallPassesArgumentsInOrder(t *testing.T) {
	snprintf := function(t, libc(t), "snprintf")
	format := CString("%d %d %d %d %d %d %d %d %s")
	text := CString("end")
	for _, fast := range []bool{false, true} {
		out := make([]byte, 64)
		var n uintptr
		if fast { // all on the heap
			n = snprintf.Fast(uintptr(unsafe.Pointer(&out[0])), 64, uintptr(unsafe.Pointer(&format[0])), 1, 2, 3, 4, 5, 6, 7, 8, uintptr(unsafe.Pointer(&text[0])))
		} else {
			n = snprintf.Call(uintptr(unsafe.Pointer(&out[0])), 64, uintptr(unsafe.Pointer(&format[0])), 1, 2, 3, 4, 5, 6, 7, 8, uintptr(unsafe.Pointer(&text[0])))
		}
		require.Equal(t, "1 2 3 4 5 6 7 8 end", Text(out))
		require.EqualValues(t, len("1 2 3 4 5 6 7 8 end"), Int32(n))
	}
}

func TestIntResultIsCut(t *testing.T) {
	atoi := function(t, libc(t), "atoi")
	minus := CString("-7")
	require.EqualValues(t, -7, Int32(atoi.Call(uintptr(unsafe.Pointer(&minus[0])))))
	require.EqualValues(t, -1, Int32(0xdead_beef_ffff_ffff))
}

func TestFastDoesNotAllocate(t *testing.T) {
	if raceOn {
		t.Skip("the race detector empties pools")
	}
	labs := function(t, libc(t), "labs")
	var got uintptr
	require.Zero(t, testing.AllocsPerRun(200, func() { got += labs.Fast(^uintptr(0)) }))
	require.EqualValues(t, 201, got)
}

func TestMisuse(t *testing.T) {
	labs := function(t, libc(t), "labs")
	require.Panics(t, func() { labs.Fast(make([]uintptr, maxFast+1)...) })
	require.Panics(t, func() { Func(0).Call() })
	require.Panics(t, func() { Func(0).Fast() })
	var fn func()
	require.ErrorIs(t, Bind(&fn, 0), goccl.ErrUnsupported)
	require.ErrorIs(t, Bind(3, labs), goccl.ErrInvalid)
	_, err := Callback(3)
	require.ErrorIs(t, err, goccl.ErrInvalid)
}

func TestBindFloats(t *testing.T) {
	l, err := Open("libm.so.6")
	require.NoError(t, err)
	var ldexp func(x float64, e int32) float64
	require.NoError(t, Bind(&ldexp, function(t, l, "ldexp")))
	require.Equal(t, 12.0, ldexp(1.5, 3))
}

// inet_ntoa takes its structure by value, lldiv returns one.
func TestBindStructures(t *testing.T) {
	l := libc(t)
	var ntoa func(struct{ b [4]byte }) uintptr
	require.NoError(t, Bind(&ntoa, function(t, l, "inet_ntoa")))
	require.Equal(t, "10.1.2.3", GoString(ntoa(struct{ b [4]byte }{[4]byte{10, 1, 2, 3}})))
	var lldiv func(a, b int64) struct{ quot, rem int64 }
	require.NoError(t, Bind(&lldiv, function(t, l, "lldiv")))
	require.Equal(t, struct{ quot, rem int64 }{-3, -2}, lldiv(-17, 5))
}

var compare = sync.OnceValues(func() (Func, error) {
	return Callback(func(a, b uintptr) uintptr {
		x, y := *(*int32)(foreign(a)), *(*int32)(foreign(b))
		return uintptr(x - y)
	})
})

func TestCallback(t *testing.T) {
	f, err := compare()
	require.NoError(t, err)
	v := []int32{5, -3, 9, 0, 2}
	function(t, libc(t), "qsort").Call(uintptr(unsafe.Pointer(&v[0])), uintptr(len(v)), 4, uintptr(f))
	require.True(t, slices.IsSorted(v), v)
}

func TestStrings(t *testing.T) {
	require.Equal(t, []byte("ab\x00"), CString("ab"))
	require.Equal(t, []byte("ab\x00"), CString("ab\x00cd"))
	require.Equal(t, []byte{0}, CString(""))
	require.Equal(t, "ab", Text([]byte("ab\x00cd")))
	require.Equal(t, "ab", Text([]byte("ab")))
	require.Empty(t, GoString(0))
	require.Nil(t, GoBytes(0, 3))

	l := libc(t)
	malloc, free := function(t, l, "malloc"), function(t, l, "free")
	fill := function(t, l, "memset")
	p := malloc.Call(longest + 16)
	defer free.Call(p)
	fill.Call(p, 'x', longest+16)
	require.Equal(t, strings.Repeat("x", longest), GoString(p), "a text without an end")
	require.Equal(t, []byte("xxx"), GoBytes(p, 3))
}

// A variable whose address Addr has seen stays where it is while the stack grows.
func TestAddrKeepsInPlace(t *testing.T) {
	moved := 0
	done := make(chan bool)
	for range 50 {
		go func() { // a new goroutine has a small stack
			var x [4]uint64
			addr := Addr(uintptr(unsafe.Pointer(&x)))
			deep(20, func() uintptr { return 0 })
			done <- addr == uintptr(unsafe.Pointer(&x))
		}()
		if !<-done {
			moved++
		}
	}
	require.Zero(t, moved)
}

// Calls from many goroutines, with growing stacks, each get their own results.
func TestConcurrentCalls(t *testing.T) {
	strtol := function(t, libc(t), "labs")
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 500 {
				if got := deep(g%5, func() uintptr { return strtol.Fast(-uintptr(g*1000 + i)) }); got != uintptr(g*1000+i) {
					t.Errorf("labs(-%d) = %d", g*1000+i, got)
					return
				}
			}
		})
	}
	wg.Wait()
}

//go:noinline
func deep(n int, fn func() uintptr) uintptr {
	var pad [512]byte
	if n == 0 {
		return fn()
	}
	pad[n] = 1
	return deep(n-1, fn) + uintptr(pad[0])
}
