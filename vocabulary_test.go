package goccl_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
)

func TestDTypes(t *testing.T) {
	for _, c := range []struct {
		d          goccl.DType
		name       string
		size       int
		float, red bool
	}{
		{goccl.F32, "f32", 4, true, true}, {goccl.F64, "f64", 8, true, true}, {goccl.F16, "f16", 2, true, true},
		{goccl.BF16, "bf16", 2, true, true}, {goccl.I8, "i8", 1, false, true}, {goccl.U8, "u8", 1, false, true},
		{goccl.I32, "i32", 4, false, true}, {goccl.U32, "u32", 4, false, true}, {goccl.I64, "i64", 8, false, true},
		{goccl.U64, "u64", 8, false, true}, {goccl.F8E4M3, "f8e4m3", 1, true, false}, {goccl.F8E5M2, "f8e5m2", 1, true, false},
	} {
		require.True(t, c.d.Valid())
		require.Equal(t, c.name, c.d.String())
		require.Equal(t, c.size, c.d.Size(), c.name)
		require.Equal(t, c.float, c.d.Float(), c.name)
		require.Equal(t, c.red, c.d.Reducible(), c.name)
		require.Equal(t, c.red, slices.Contains(goccl.DTypes(), c.d), c.name)
		parsed, err := goccl.ParseDType(c.name)
		require.NoError(t, err)
		require.Equal(t, c.d, parsed)
	}
	for _, d := range []goccl.DType{0, goccl.F8E5M2 + 1, 255} {
		require.False(t, d.Valid())
		require.Zero(t, d.Size())
		require.False(t, d.Reducible())
		require.False(t, d.Float())
		require.Equal(t, fmt.Sprintf("dtype(%d)", uint8(d)), d.String())
	}
	_, err := goccl.ParseDType("")
	require.ErrorIs(t, err, goccl.ErrInvalid)
}

// checkOf holds DTypeOf against the size that the compiler knows.
func checkOf[T goccl.Number](t *testing.T, want goccl.DType) {
	t.Helper()
	var z T
	require.Equal(t, want, goccl.DTypeOf[T]())
	require.Equal(t, int(unsafe.Sizeof(z)), want.Size())
}

func TestDTypeOf(t *testing.T) {
	checkOf[float32](t, goccl.F32)
	checkOf[float64](t, goccl.F64)
	checkOf[goccl.Float16](t, goccl.F16)
	checkOf[goccl.BFloat16](t, goccl.BF16)
	checkOf[int8](t, goccl.I8)
	checkOf[uint8](t, goccl.U8)
	checkOf[int32](t, goccl.I32)
	checkOf[uint32](t, goccl.U32)
	checkOf[int64](t, goccl.I64)
	checkOf[uint64](t, goccl.U64)
	var d goccl.DType
	require.Zero(t, testing.AllocsPerRun(100, func() { d = goccl.DTypeOf[uint64]() }))
	require.Equal(t, goccl.U64, d)
}

func TestReduceOps(t *testing.T) {
	names := []string{"sum", "prod", "min", "max", "avg"}
	require.Len(t, goccl.ReduceOps(), len(names))
	for i, op := range goccl.ReduceOps() {
		require.True(t, op.Valid())
		require.Equal(t, names[i], op.String())
		require.Equal(t, op, op.Kind())
		scale, has := op.Scale()
		require.False(t, has)
		require.Equal(t, float32(1), scale)
		parsed, err := goccl.ParseReduceOp(names[i])
		require.NoError(t, err)
		require.Equal(t, op, parsed)
		require.False(t, (op | 1<<40).Valid(), "%v has no scale", op)
	}
	require.Equal(t, goccl.Sum, goccl.ReduceOp(0), "the zero value sums")
	_, err := goccl.ParseReduceOp("premulsum")
	require.ErrorIs(t, err, goccl.ErrInvalid)
	require.False(t, goccl.ReduceOp(200).Valid())
	require.Equal(t, "redop(0xc8)", goccl.ReduceOp(200).String())
}

func TestPreMulSum(t *testing.T) {
	a, b := goccl.PreMulSum(0.5), goccl.PreMulSum(-3)
	require.NotEqual(t, a, b)
	require.Equal(t, a.Kind(), b.Kind(), "the kind is equal on ranks with other scales")
	require.Equal(t, "premulsum(0.5)", a.String())
	for _, scale := range []float32{0, 0.5, -3, math.MaxFloat32, float32(math.Inf(-1))} {
		op := goccl.PreMulSum(scale)
		require.True(t, op.Valid())
		got, has := op.Scale()
		require.True(t, has)
		require.Equal(t, scale, got)
	}
}

func TestCollectives(t *testing.T) {
	for _, c := range []struct {
		c               goccl.Collective
		name            string
		reduces, rooted bool
	}{
		{goccl.AllReduce, "allreduce", true, false}, {goccl.Reduce, "reduce", true, true}, {goccl.Broadcast, "broadcast", false, true},
		{goccl.AllGather, "allgather", false, false}, {goccl.ReduceScatter, "reducescatter", true, false},
		{goccl.AllToAll, "alltoall", false, false}, {goccl.Gather, "gather", false, true}, {goccl.Scatter, "scatter", false, true},
		{goccl.SendRecv, "sendrecv", false, false}, {goccl.Barrier, "barrier", false, false},
	} {
		require.True(t, c.c.Valid())
		require.Equal(t, c.name, c.c.String())
		require.Equal(t, c.reduces, c.c.Reduces(), c.name)
		require.Equal(t, c.rooted, c.c.Rooted(), c.name)
		parsed, err := goccl.ParseCollective(c.name)
		require.NoError(t, err)
		require.Equal(t, c.c, parsed)
	}
	for _, c := range []goccl.Collective{0, goccl.Barrier + 1} {
		require.False(t, c.Valid())
		require.Equal(t, fmt.Sprintf("collective(%d)", uint8(c)), c.String())
	}
	_, err := goccl.ParseCollective("")
	require.ErrorIs(t, err, goccl.ErrInvalid)
}

func TestAlgorithmsAndProtocols(t *testing.T) {
	for a, name := range []string{"auto", "ring", "tree", "oneshot", "twoshot", "direct"} {
		parsed, err := goccl.ParseAlgorithm(name)
		require.NoError(t, err)
		require.Equal(t, goccl.Algorithm(a), parsed)
		require.True(t, parsed.Valid())
		require.Equal(t, name, parsed.String())
	}
	for p, name := range []string{"auto", "ll", "simple"} {
		parsed, err := goccl.ParseProtocol(name)
		require.NoError(t, err)
		require.Equal(t, goccl.Protocol(p), parsed)
		require.True(t, parsed.Valid())
		require.Equal(t, name, parsed.String())
	}
	require.False(t, goccl.Algorithm(6).Valid())
	require.Equal(t, "algorithm(6)", goccl.Algorithm(6).String())
	require.False(t, goccl.Protocol(3).Valid())
	require.Equal(t, "protocol(3)", goccl.Protocol(3).String())
	_, errA := goccl.ParseAlgorithm("rings")
	_, errP := goccl.ParseProtocol("ll128")
	require.ErrorIs(t, errors.Join(errA, errP), goccl.ErrInvalid)
}
