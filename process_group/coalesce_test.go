package processgroup_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	processgroup "github.com/goccl/goccl/process_group"
	"github.com/goccl/goccl/process_group/backend/fake"
	"github.com/goccl/goccl/trace"
)

func TestCoalescedTransfersAreOneBatch(t *testing.T) {
	g, b := held(t, nil)
	w := g.Coalesce(func() error {
		g.Send(f32(1), 1)
		g.BatchSendRecv([]processgroup.P2P{{Buf: f32(2), Peer: 1, Recv: true}})
		g.BatchSendRecv(nil)
		g.Recv(f32(3), 1)
		return nil
	})
	op := b.Pending()[0]
	require.Equal(t, goccl.SendRecv, op.Coll)
	require.Empty(t, op.Parts)
	require.Len(t, op.Batch, 3)
	require.Equal(t, []bool{false, true, true}, []bool{op.Batch[0].Recv, op.Batch[1].Recv, op.Batch[2].Recv})
	require.Equal(t, "batch", w.Info().Op)
	require.EqualValues(t, 24, w.Info().Bytes)
	require.True(t, w.Info().P2P)
	b.Complete(nil)
	require.NoError(t, w.Wait(t.Context()))
}

func TestCoalescedCollectivesAreParts(t *testing.T) {
	g, b := held(t, nil)
	var inner, deep processgroup.Work
	w := g.Coalesce(func() error {
		g.Send(f32(1), 1)
		g.Recv(f32(1), 1, processgroup.Tag(4))
		inner = g.AllReduce(f32(2), goccl.Max, processgroup.Label("x"))
		deep = g.Coalesce(func() error { g.Broadcast(f32(3), 1); return nil })
		done, err := deep.Test()
		require.False(t, done)
		require.NoError(t, err)
		require.ErrorIs(t, inner.Wait(t.Context()), goccl.ErrInvalid)
		require.Empty(t, b.Pending(), "nothing starts within")
		return nil
	})
	require.Equal(t, w, inner)
	require.Equal(t, w, deep)
	require.Len(t, b.Pending(), 1)
	op := b.Pending()[0]
	require.Equal(t, goccl.AllReduce, op.Coll)
	require.False(t, op.P2P())
	require.EqualValues(t, 1, op.Seq)
	require.Empty(t, op.Batch)
	var names []string
	for _, p := range op.Parts {
		names = append(names, p.Name())
	}
	require.Equal(t, []string{"batch", "recv", "allreduce", "broadcast"}, names)
	require.Equal(t, "x", op.Parts[2].Label)
	info := w.Info()
	require.Equal(t, "coalesced batch", info.Op)
	require.Equal(t, 4, info.Parts)
	b.Complete(nil)
	require.NoError(t, w.Wait(t.Context()))
	require.Equal(t, 5, processgroup.FreeOps(g), "the parts are used again")
}

func TestC73CoalesceCannotBeLeftOpen(t *testing.T) {
	why := errors.New("no")
	cases := map[string]func(g *processgroup.Group) processgroup.Work{
		"error": func(g *processgroup.Group) processgroup.Work { return g.Coalesce(func() error { return why }) },
		"inner error": func(g *processgroup.Group) processgroup.Work {
			return g.Coalesce(func() error { g.Coalesce(func() error { return why }); return nil })
		},
		"panic": func(g *processgroup.Group) (w processgroup.Work) {
			defer func() { recover(); w = g.AllReduce(f32(1), goccl.Sum) }()
			return g.Coalesce(func() error { panic("boom") })
		},
		"refused part": func(g *processgroup.Group) processgroup.Work {
			return g.Coalesce(func() error { g.AllReduce(f32(1), goccl.Sum); g.Broadcast(f32(1), 9); return nil })
		},
		"half of a transfer to itself": func(g *processgroup.Group) processgroup.Work {
			return g.Coalesce(func() error { g.Send(f32(1), 0); return nil })
		},
	}
	for name, call := range cases {
		t.Run(name, func(t *testing.T) {
			control := new(fake.Control)
			g, b := held(t, control)
			w := call(g)
			err := w.Wait(t.Context())
			require.Error(t, err)
			require.Error(t, control.Told())
			require.Equal(t, control.Told().Error(), firstLine(err))
			require.Zero(t, b.Started())
			// The group is not open: what follows fails, it does not hang in a batch.
			next := g.AllReduce(f32(1), goccl.Sum)
			require.Equal(t, firstLine(err), firstLine(next.Wait(t.Context())))
		})
	}
}

// TestCoalesceOfTwoGoroutines holds that two that meet by mistake end, well or with
// an error, and that the group is not left open.
func TestCoalesceOfTwoGoroutines(t *testing.T) {
	for range 200 {
		g := processgroup.New(processgroup.Config{Name: "g", Size: 2, Backend: fake.Immediate()})
		errs := make(chan error, 2)
		for range cap(errs) {
			go func() {
				w := g.Coalesce(func() error { g.AllReduce(f32(1), goccl.Sum); return nil })
				<-w.Done()
				errs <- w.Wait(t.Context())
			}()
		}
		first, second := <-errs, <-errs
		if first == nil && second == nil {
			require.NoError(t, g.AllReduce(f32(1), goccl.Sum).Wait(t.Context()))
		}
		require.NoError(t, g.Close())
	}
}

func TestCoalesceDone(t *testing.T) {
	g, b := held(t, nil)
	var done <-chan struct{}
	w := g.Coalesce(func() error { done = g.AllReduce(f32(1), goccl.Sum).Done(); return nil })
	select {
	case <-done:
		t.Fatal("closed before the end")
	default:
	}
	b.Complete(nil)
	<-done
	require.NoError(t, w.Wait(t.Context()))

	var empty <-chan struct{}
	g.Coalesce(func() error { empty = g.BatchSendRecv(nil).Done(); return nil })
	<-empty
	var refused <-chan struct{}
	g.Coalesce(func() error { refused = g.AllReduce(f32(1), goccl.Sum).Done(); return errors.New("no") })
	<-refused
}

func TestRecorderRing(t *testing.T) {
	g := immediate(t)
	b := device.SliceOf(make([]float32, 1))
	for range 4500 {
		require.NoError(t, g.AllReduce(b, goccl.Sum).Wait(t.Context()))
	}
	require.NoError(t, g.Send(b, 1).Wait(t.Context()))
	var last processgroup.OpInfo
	n := 0
	for o := range g.Operations() {
		if n > 0 && !o.P2P {
			require.Equal(t, last.Seq+1, o.Seq)
		}
		last, n = o, n+1
	}
	require.Equal(t, 2000, n)
	require.Equal(t, "send", last.Op)
	require.EqualValues(t, 1, last.Seq, "transfers count apart")
	for range g.Operations() {
		break
	}
}

func TestInfo(t *testing.T) {
	g, b := held(t, nil)
	w := g.ReduceScatter(f32(3), f32(6), goccl.Avg, processgroup.Label("l"))
	i := w.Info()
	require.Equal(t, "reducescatter", i.Op)
	require.Equal(t, "world", i.Group)
	require.Equal(t, trace.Started, i.State)
	require.Equal(t, goccl.Avg, i.Redop)
	require.True(t, i.Reduces)
	require.EqualValues(t, 24, i.Bytes)
	require.EqualValues(t, 6, i.Count)
	require.True(t, i.Ended.IsZero())
	require.NotZero(t, g.Health().SinceProgress)
	b.Complete(nil)
	require.NoError(t, w.Wait(t.Context()))
	require.False(t, w.Info().Ended.IsZero())
	require.Equal(t, trace.Done, w.Info().State)
	require.Equal(t, processgroup.OpInfo{Root: -1}, processgroup.Work{}.Info())
	require.Zero(t, g.Health().SinceProgress)
	require.EqualValues(t, 1, g.Health().LastSeq)
	d := g.Dump("asked")
	require.Equal(t, "avg", d.Entries[0].Redop)
	require.Equal(t, "f32", d.Entries[0].DType)
	require.Equal(t, "asked", d.Reason)
}
