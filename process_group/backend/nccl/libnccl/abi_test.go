package libnccl

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/internal/dl"
)

// Sizes as a C compiler gives them for the headers of these versions.
func TestSizeOfConfig(t *testing.T) {
	for _, c := range []struct {
		version Version
		size    int
	}{
		{22003, 48}, {22005, 48}, {22304, 48}, {22403, 48}, {22501, 48}, {22602, 48}, {22703, 72}, {22707, 72}, {22803, 80},
		{22809, 80}, {22902, 88}, {22907, 88}, {23003, 96}, {23007, 96}, {23102, 120}, {23203, 120}, {23309, 120},
	} {
		require.Equal(t, c.size, sizeFor(c.version), "NCCL %v", c.version)
	}
	require.Equal(t, maxConfig, sizeFor(Newest))
	require.EqualValues(t, maxConfig, unsafe.Sizeof(layout{}.words))
	require.EqualValues(t, 128, unsafe.Sizeof(UniqueID{}))
}

func TestFieldsDoNotOverlap(t *testing.T) {
	end, since := 16, Version(0)
	for f, d := range fields {
		width := 4
		if d.text {
			width = 8
			end = (end + 7) &^ 7
		}
		require.Equal(t, end, d.offset, d.name)
		require.GreaterOrEqual(t, d.since, since, "%s: NCCL only appends", d.name)
		end, since = end+width, d.since
		require.Equal(t, d.name, Field(f).String())
		require.Equal(t, d.since, Field(f).Since())
	}
	require.Equal(t, "field(99)", Field(99).String())
	require.Greater(t, Field(99).Since(), Newest)
}

// at reads the configuration as C does.
func (l *layout) at(offset int) int32 { return *(*int32)(unsafe.Add(unsafe.Pointer(&l.words), offset)) }

func (l *layout) text(offset int) string {
	return dl.GoString(*(*uintptr)(unsafe.Add(unsafe.Pointer(&l.words), offset)))
}

func TestEncode(t *testing.T) {
	var c Config
	l, err := c.encode(22809)
	require.NoError(t, err)
	require.EqualValues(t, 80, l.words[0])
	require.EqualValues(t, 0xcafebeef, uint32(l.at(8)))
	require.EqualValues(t, 22809, l.at(12))
	for _, f := range fields {
		if f.text {
			require.Empty(t, l.text(f.offset), f.name)
		} else {
			require.EqualValues(t, -1<<31, l.at(f.offset), f.name)
		}
	}

	c.Int(Blocking, 0)
	c.Int(MinCTAs, 32)
	c.Int(MaxCTAs, 64)
	c.Int(TrafficClass, -3)
	c.Text(NetName, "Socket")
	c.Text(CommName, "world")
	l, err = c.encode(23999)
	require.NoError(t, err)
	require.EqualValues(t, 120, l.words[0])
	require.EqualValues(t, Newest, l.at(12), "a newer library takes its defaults for what came later")
	require.Equal(t, []int32{0, unset, 32, 64}, []int32{l.at(16), l.at(20), l.at(24), l.at(28)})
	require.EqualValues(t, -3, l.at(44))
	require.Equal(t, "Socket", l.text(32))
	require.Equal(t, "world", l.text(48))

	_, err = c.encode(22005)
	require.ErrorIs(t, err, goccl.ErrUnsupported)
	require.ErrorContains(t, err, "the setting commName came with NCCL 2.27.0; 2.20.5 is loaded")
	require.ErrorContains(t, err, "trafficClass")
}

func TestConfigBounds(t *testing.T) {
	for _, bad := range []func(c *Config){
		func(c *Config) { c.Int(MinCTAs, 0); c.Int(MaxCTAs, 4) },
		func(c *Config) { c.Int(MaxCTAs, -1) },
		func(c *Config) { c.Int(MinCTAs, 5) },
		func(c *Config) { c.Int(MinCTAs, 5); c.Int(MaxCTAs, 4) },
	} {
		var c Config
		bad(&c)
		_, err := c.encode(Newest)
		require.ErrorIs(t, err, goccl.ErrInvalid)
	}
	var c Config
	require.False(t, c.Has(MaxCTAs))
	require.NoError(t, c.Set("maxCTAs", "4"))
	require.NoError(t, c.Set("netName", "IB"))
	require.True(t, c.Has(MaxCTAs))
	l, err := c.encode(Newest)
	require.NoError(t, err)
	require.EqualValues(t, 4, l.at(28))
	require.Equal(t, "IB", l.text(32))
	require.ErrorIs(t, c.Set("maxCTAs", "many"), goccl.ErrInvalid)
	require.ErrorContains(t, c.Set("maxCtas", "4"), `no setting called "maxCtas"`)
	require.Panics(t, func() { c.Int(NetName, 1) })
	require.Panics(t, func() { c.Text(Blocking, "1") })
	require.Panics(t, func() { c.Int(MaxCTAs, 1<<40) })
}

func TestVersions(t *testing.T) {
	for _, c := range []struct {
		code Version
		text string
		ok   bool
	}{
		{22005, "2.20.5", true}, {22809, "2.28.9", true}, {23203, "2.32.3", true}, {24010, "2.40.10", true},
		{21903, "2.19.3", false}, {2804, "2.8.4", false}, {30001, "3.0.1", false}, {0, "0.0.0", false},
	} {
		require.Equal(t, c.text, c.code.String())
		err := c.code.check()
		require.Equal(t, c.ok, err == nil, "%v: %v", c.code, err)
		if !c.ok {
			require.ErrorIs(t, err, goccl.ErrUnsupported)
		}
	}
}

func TestErrors(t *testing.T) {
	e := &Error{Call: "ncclAllReduce", Result: RemoteError, Text: "remote process exited", Detail: "socket closed"}
	require.ErrorIs(t, e, goccl.ErrPeerLost)
	require.Equal(t, "ncclAllReduce: ncclRemoteError (remote process exited): socket closed; a peer or the network to it is gone: look into that rank's log", e.Error())
	require.ErrorIs(t, &Error{Result: InvalidUsage}, goccl.ErrInvalid)
	require.ErrorIs(t, &Error{Result: Timeout}, goccl.ErrTimeout)
	require.NoError(t, errors.Unwrap(&Error{Result: SystemError}))
	require.NoError(t, errors.Unwrap(&Error{Result: 77}))
	require.Equal(t, "ncclX: ncclResult(77)", (&Error{Call: "ncclX", Result: 77}).Error())
	require.False(t, Success.Failed())
	require.False(t, InProgress.Failed())
	for r := UnhandledCudaError; r <= Timeout; r++ {
		require.Equal(t, r != InProgress, r.Failed(), r)
	}
}

func TestNumbersOfTypesAndOps(t *testing.T) {
	seen := map[DataType]bool{}
	for _, d := range goccl.DTypes() {
		n, err := TypeOf(d)
		require.NoError(t, err)
		require.False(t, seen[n], d)
		seen[n] = true
		moving, err := MovingTypeOf(d)
		require.NoError(t, err)
		require.Equal(t, n, moving)
	}
	for _, d := range []goccl.DType{goccl.F8E4M3, goccl.F8E5M2} {
		_, err := TypeOf(d)
		require.ErrorIs(t, err, goccl.ErrUnsupported)
		require.ErrorContains(t, err, d.String())
		n, err := MovingTypeOf(d)
		require.NoError(t, err)
		require.Equal(t, Byte, n)
	}
	_, err := MovingTypeOf(0)
	require.ErrorIs(t, err, goccl.ErrUnsupported)
	for _, op := range goccl.ReduceOps() {
		_, err := OpOf(op)
		require.NoError(t, err)
	}
	_, err = OpOf(goccl.PreMulSum(2))
	require.ErrorIs(t, err, goccl.ErrUnsupported)
}

func TestScaleBits(t *testing.T) {
	for d, want := range map[goccl.DType]uint64{goccl.F32: 0x3f000000, goccl.F64: 0x3fe0000000000000, goccl.F16: 0x3800, goccl.BF16: 0x3f00} {
		require.Equal(t, want, scaleBits(0.5, d), d)
	}
}
