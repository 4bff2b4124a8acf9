package bootstrap

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
)

func TestFailReachesEveryRankWithOneFirstCause(t *testing.T) {
	overTransports(t, func(t *testing.T, tr string) {
		const n = 6
		w := newWorld(t, tr, n, nil)
		ctx := testContext(t)
		waiting := make(chan []error)
		go func() {
			waiting <- each(n, func(rank int) error {
				if rank == 2 || rank == 5 { // two ranks fail at the same time
					w.sessions[rank].Fail(fmt.Sprintf("cause of %d", rank))
					return nil
				}
				return w.sessions[rank].Barrier(ctx)
			})
		}()
		errs := <-waiting
		first := w.logs[0].next(t)
		second := w.logs[0].next(t)
		require.Equal(t, Failed, first.Kind)
		require.Contains(t, []int{2, 5}, first.Rank)
		require.Equal(t, fmt.Sprintf("cause of %d", first.Rank), first.Text)
		require.Equal(t, w.sessions[0].Peers()[first.Rank].PID, first.PID)
		require.NotEmpty(t, first.Host)
		for rank := 1; rank < n; rank++ {
			require.Equal(t, first, w.logs[rank].next(t), "rank %d hears another first event", rank)
			require.Equal(t, second, w.logs[rank].next(t))
		}
		for _, rank := range []int{0, 1, 3, 4} {
			require.ErrorIs(t, errs[rank], goccl.ErrAborted)
			require.Equal(t, errs[0].Error(), errs[rank].Error())
			require.ErrorContains(t, errs[rank], first.Text)
			var e *goccl.Error
			require.ErrorAs(t, errs[rank], &e)
			require.Equal(t, first.Rank, e.Peer)
		}
	})
}

func TestFailIsHeardEvenWhenTheRankClosesAtOnce(t *testing.T) {
	overTransports(t, func(t *testing.T, tr string) {
		w := newWorld(t, tr, 2, nil)
		w.sessions[1].Fail("last words")
		require.NoError(t, w.sessions[1].Close())
		e := w.logs[0].next(t)
		require.Equal(t, Failed, e.Kind)
		require.Equal(t, "last words", e.Text)
	})
}

func TestLeavingIsNoLoss(t *testing.T) {
	overTransports(t, func(t *testing.T, tr string) {
		w := newWorld(t, tr, 3, nil)
		ctx := testContext(t)
		require.NoError(t, w.sessions[1].Send(ctx, 0, 4, []byte("before I go")))
		require.NoError(t, w.sessions[1].Close())
		for _, rank := range []int{0, 2} {
			e := w.logs[rank].next(t)
			require.Equal(t, Left, e.Kind)
			require.Equal(t, 1, e.Rank)
		}
		got, err := w.sessions[0].Recv(ctx, 1, 4)
		require.NoError(t, err, "what it had sent is still there")
		require.Equal(t, "before I go", string(got))
		_, err = w.sessions[0].Recv(ctx, 1, 4)
		require.ErrorIs(t, err, goccl.ErrClosed)
		require.ErrorContains(t, err, "peer 1 (host ")
		require.ErrorIs(t, w.sessions[0].Send(ctx, 1, 4, nil), goccl.ErrClosed)
		err = w.sessions[2].Barrier(ctx)
		require.ErrorIs(t, err, goccl.ErrClosed)
		require.ErrorContains(t, err, "rank 1 (host ")
		// The others go on.
		require.NoError(t, w.sessions[2].Send(ctx, 0, 1, []byte("still here")))
		_, err = w.sessions[0].Recv(ctx, 2, 1)
		require.NoError(t, err)
	})
}

// C29: rank 0 finishes first; the hub serves the others until they have left too.
func TestC29RankZeroMayLeaveFirst(t *testing.T) {
	overTransports(t, func(t *testing.T, tr string) {
		w := newWorld(t, tr, 3, nil)
		ctx := testContext(t)
		for _, err := range each(3, func(rank int) error {
			if err := w.sessions[rank].Barrier(ctx); err != nil {
				return err
			}
			if rank == 0 {
				return w.sessions[0].Close()
			}
			other := 3 - rank
			if err := w.sessions[rank].Send(ctx, other, 0, []byte("done")); err != nil {
				return err
			}
			_, err := w.sessions[rank].Recv(ctx, other, 0)
			return err
		}) {
			require.NoError(t, err)
		}
		each(3, func(rank int) error { return w.sessions[rank].Close() })
		require.NoError(t, w.serve())
	})
}

// C18: a connection that breaks is a loss, named on all other ranks.
func TestC18LostRankIsNamed(t *testing.T) {
	overTransports(t, func(t *testing.T, tr string) {
		w := newWorld(t, tr, 3, nil)
		ctx := testContext(t)
		waiting := make(chan error, 2)
		go func() { waiting <- w.sessions[0].Barrier(ctx) }()
		go func() { _, err := w.sessions[2].Recv(ctx, 1, 0); waiting <- err }()
		w.sessions[1].link.close() // as if the process had died
		for _, rank := range []int{0, 2} {
			e := w.logs[rank].next(t)
			require.Equal(t, Lost, e.Kind)
			require.Equal(t, 1, e.Rank)
			require.NotEmpty(t, e.Text)
		}
		for range 2 {
			err := <-waiting
			require.ErrorIs(t, err, goccl.ErrPeerLost)
			require.ErrorContains(t, err, "peer 1")
		}
		// The rank itself sees the hub vanish.
		e := w.logs[1].next(t)
		require.Equal(t, Lost, e.Kind)
		require.Equal(t, 0, e.Rank)
	})
}

func TestLostHubIsALostRankZero(t *testing.T) {
	overTransports(t, func(t *testing.T, tr string) {
		w := newWorld(t, tr, 3, nil)
		ctx := testContext(t)
		waiting := make(chan error, 1)
		go func() { waiting <- w.sessions[2].Barrier(ctx) }()
		require.NoError(t, w.root.Close())
		for _, l := range w.logs {
			e := l.next(t)
			require.Equal(t, Lost, e.Kind)
			require.Equal(t, 0, e.Rank)
		}
		require.ErrorIs(t, <-waiting, goccl.ErrPeerLost)
		require.ErrorIs(t, w.serve(), goccl.ErrClosed)
		require.ErrorContains(t, w.serve(), "ranks 0, 1, 2")
		_, err := w.sessions[1].AllGather(ctx, nil)
		require.ErrorIs(t, err, goccl.ErrPeerLost, "a dead session says why")
		require.Empty(t, w.logs[1].ch, "one event, not two")
	})
}

// A stopped rank reads nothing: the hub drops it when its queue is full, and the
// traffic of the others never waits for it.
func TestSlowReaderStopsNobody(t *testing.T) {
	w := newWorld(t, "inproc", 3, nil)
	ctx := testContext(t)
	w.sessions[2].mu.Lock() // its reader stops at the first message
	release := sync.OnceFunc(w.sessions[2].mu.Unlock)
	defer release()
	for i := range 40 {
		_ = w.sessions[0].Send(ctx, 2, 7, make([]byte, 1<<20)) // fails once the rank is lost
		require.NoError(t, w.sessions[0].Send(ctx, 1, 1, []byte{byte(i)}))
		got, err := w.sessions[1].Recv(ctx, 0, 1)
		require.NoError(t, err)
		require.Equal(t, []byte{byte(i)}, got)
	}
	e := w.logs[1].next(t)
	release()
	require.Equal(t, Lost, e.Kind)
	require.Equal(t, 2, e.Rank)
	require.Contains(t, e.Text, "does not read")
}

// C12: a rank that cannot join says why, and all others stop waiting.
func TestC12FailedInitReachesAll(t *testing.T) {
	overTransports(t, func(t *testing.T, tr string) {
		const n = 4
		ctx := testContext(t)
		root := openRoot(t, tr, RootOptions{Size: n})
		serve := serveRoot(ctx, t, root)
		errs := each(n, func(rank int) error {
			cfg := Config{Rank: rank, Size: n}
			if rank == 1 {
				return FailJoin(ctx, root.ID(), cfg, "cannot allocate 8 GiB")
			}
			_, err := Join(ctx, root.ID(), cfg)
			return err
		})
		require.NoError(t, errs[1])
		for _, rank := range []int{0, 2, 3} {
			require.ErrorIs(t, errs[rank], goccl.ErrAborted)
			require.ErrorContains(t, errs[rank], "rank 1 (host ")
			require.ErrorContains(t, errs[rank], "cannot allocate 8 GiB")
			require.Equal(t, errs[0].Error(), errs[rank].Error())
		}
		require.ErrorContains(t, serve(), "cannot allocate 8 GiB")
	})
}
