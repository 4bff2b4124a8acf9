package comm_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm"
	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/comm/transport/inproc"
	"github.com/goccl/goccl/device"
)

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// sameFirstLine wants one sentence on all ranks, of the given kind, with all words.
func sameFirstLine(t *testing.T, errs []error, kind error, words ...string) {
	t.Helper()
	for _, err := range errs {
		require.Error(t, err)
		require.ErrorIs(t, err, kind)
		require.Equal(t, firstLine(errs[0]), firstLine(err))
		for _, w := range words {
			require.Contains(t, firstLine(err), w)
		}
	}
}

func TestSettingOnOneRankIsNamed(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := comm.InitAll(ctx, 3, func(r int, cfg *comm.Config) {
		cfg.Transports = []transport.Transport{inproc.New()}
		if r == 1 {
			cfg.Settings = map[string]string{"GOCCL_ALGO": "ring"}
		}
	})
	require.ErrorIs(t, err, goccl.ErrMismatch)
	require.Contains(t, err.Error(), `ranks disagree on GOCCL_ALGO: "ring" on rank 1, not set on ranks 0, 2`)
}

// A rank that never calls is named by all who wait for it.
func TestTimeoutNamesTheMissing(t *testing.T) {
	cs := world(t, 3, func(_ int, cfg *comm.Config) { cfg.Timeout = 400 * time.Millisecond })
	errs := each(cs[:2], func(c *comm.Communicator) error {
		b := device.SliceOf([]float32{1, float32(c.Rank())})
		return c.AllReduce(b, b, goccl.Sum).Wait(context.Background())
	})
	sameFirstLine(t, errs, goccl.ErrTimeout, "allreduce f32[2] sum", "missing rank 2")
	var e *goccl.Error
	require.True(t, errors.As(errs[0], &e))
	require.Equal(t, []int{2}, e.Missing)
}

// A rank that closes while others still need it is named, not waited for.
func TestClosedTooEarlyIsNamed(t *testing.T) {
	cs := world(t, 2, nil)
	require.NoError(t, cs[1].Close())
	b := device.SliceOf([]float32{1})
	err := cs[0].AllReduce(b, b, goccl.Sum).Wait(context.Background())
	require.ErrorIs(t, err, goccl.ErrPeerLost)
	require.Contains(t, firstLine(err), "peer 1")
}

// C58: aborts end everything at once, from any goroutine, any number of times.
func TestC58AbortEndsAllOperations(t *testing.T) {
	a, b := world(t, 2, nil), world(t, 2, nil)
	buf := func() device.Buffer { return device.SliceOf(make([]float32, 100_000)) }
	p1 := a[0].AllReduce(buf(), buf(), goccl.Sum)
	p2 := a[0].AllReduce(buf(), buf(), goccl.Sum)
	p3 := b[1].Broadcast(buf(), 0)
	mine := errors.New("out of cheese")
	for range 3 {
		a[1].Abort(mine)
		b[1].Abort(nil)
	}
	for _, p := range []comm.Pending{p1, p2, p3} {
		require.ErrorIs(t, p.Wait(context.Background()), goccl.ErrAborted)
	}
	require.Contains(t, a[0].Err().Error(), "out of cheese")
	<-a[1].Failed() // the hub says which failure was first, to each rank when it can
	require.ErrorIs(t, a[1].Err(), mine, "the rank that aborted keeps its own error")
}

func TestWaitEndsWithItsContext(t *testing.T) {
	cs := world(t, 2, nil)
	buf := [2]device.Buffer{device.SliceOf([]float32{1}), device.SliceOf([]float32{2})}
	p := cs[0].AllReduce(buf[0], buf[0], goccl.Sum)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, p.Wait(ctx), context.DeadlineExceeded)
	done, err := p.Test()
	require.False(t, done)
	require.NoError(t, err)
	require.NoError(t, cs[1].AllReduce(buf[1], buf[1], goccl.Sum).Wait(context.Background()))
	require.NoError(t, p.Wait(context.Background()))
	require.NoError(t, p.Wait(context.Background()), "a Pending may be asked again")
}

func TestRefusalsChangeNothing(t *testing.T) {
	cs := world(t, 2, nil)
	f4, f8 := device.SliceOf(make([]float32, 4)), device.SliceOf(make([]float32, 8))
	c := cs[0]
	for name, p := range map[string]comm.Pending{
		"count":   c.AllReduce(f8, f4, goccl.Sum),
		"root":    c.Broadcast(f4, 2),
		"self":    c.Send(f4, 0),
		"dtype":   c.AllReduce(device.SliceOf(make([]int32, 4)), f4, goccl.Sum),
		"overlap": c.AllReduce(f8.Slice(0, 4), f8.Slice(1, 5), goccl.Sum),
		"gather":  c.AllGather(f4, f4),
		"scatter": c.ReduceScatter(f4, f4, goccl.Sum),
		"scale":   c.AllReduce(device.SliceOf(make([]int8, 4)), device.SliceOf(make([]int8, 4)), goccl.PreMulSum(2)),
	} {
		err := p.Wait(context.Background())
		require.Error(t, err, name)
		require.True(t, errors.Is(err, goccl.ErrInvalid) || errors.Is(err, goccl.ErrUnsupported), "%s: %v", name, err)
	}
	for _, err := range each(cs, func(c *comm.Communicator) error { return c.Barrier(context.Background()) }) {
		require.NoError(t, err)
	}
}

func TestWindowsReduceInPlace(t *testing.T) {
	const n, count = 3, 50_000
	cs := world(t, n, nil)
	for _, err := range each(cs, func(c *comm.Communicator) error {
		w, err := c.Alloc(4 * count)
		if err != nil {
			return err
		}
		b := w.As(count, goccl.F32)
		s := float32s(b)
		for i := range s {
			s[i] = value(c.Rank(), i)
		}
		if err := c.AllReduce(b, b, goccl.Sum).Wait(context.Background()); err != nil {
			return err
		}
		for i := range s {
			if want := float32(n*(n+1)/2) * float32(i%17+1); s[i] != want {
				return errors.New("wrong element")
			}
		}
		return w.Close()
	}) {
		require.NoError(t, err)
	}
}

// One rank with a window and one with plain memory would run other Programs: both
// are told.
func TestWindowOnOneRankIsAMismatch(t *testing.T) {
	cs := world(t, 2, nil)
	errs := each(cs, func(c *comm.Communicator) error {
		w, err := c.Alloc(1 << 20)
		if err != nil {
			return err
		}
		b := w.As(1<<18, goccl.F32)
		if c.Rank() == 1 {
			b = device.SliceOf(make([]float32, 1<<18))
		}
		return c.AllReduce(b, b, goccl.Sum).Wait(context.Background())
	})
	sameFirstLine(t, errs, goccl.ErrMismatch, "the same kind of memory")
}

func float32s(b device.Buffer) []float32 { return device.View[float32](b) }
