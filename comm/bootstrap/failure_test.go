package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/wire"
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

// C09: ranks that never start are named on every rank that did.
func TestC09MissingRanksAreNamed(t *testing.T) {
	for _, who := range []string{"root", "rank"} {
		t.Run(who+"'s deadline", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				root, err := ListenLocal(RootOptions{Size: 5})
				require.NoError(t, err)
				rootTime, rankTime := time.Hour, time.Minute
				if who == "root" {
					rootTime, rankTime = rankTime, rootTime
				}
				ctx, cancel := context.WithTimeout(t.Context(), rootTime)
				defer cancel()
				served := make(chan error)
				go func() { served <- root.Serve(ctx) }()
				for _, err := range each(5, func(rank int) error {
					if rank == 1 || rank == 4 {
						return goccl.ErrTimeout // never starts
					}
					_, err := Join(t.Context(), root.ID(), Config{Rank: rank, Size: 5, Timeout: rankTime + time.Duration(rank)*time.Second})
					require.ErrorContains(t, err, "missing ranks 1, 4")
					return err
				}) {
					require.ErrorIs(t, err, goccl.ErrTimeout)
				}
				err = <-served
				var e *goccl.Error
				require.ErrorAs(t, err, &e)
				require.Equal(t, []int{1, 4}, e.Missing)
				require.NoError(t, root.Close())
			})
		})
	}
}

// The clock of this test is virtual: a remote rank that falls silent is lost after
// three intervals, one that only has nothing to say is not.
func TestHeartbeatsTellSilentFromDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root, err := ListenLocal(RootOptions{Size: 3, Heartbeat: 5 * time.Second})
		require.NoError(t, err)
		served := make(chan error)
		go func() { served <- root.Serve(t.Context()) }()
		// Rank 1 joins, reads, and never says a word again.
		c, err := dialLocal(t.Context(), root.ID())
		require.NoError(t, err)
		accept, err := knock(t.Context(), newLink(c), root.id.secret(), wire.Hello{Job: root.id.job(), Rank: 1, Size: 3, PID: 5, Host: "mute"})
		require.NoError(t, err)
		require.EqualValues(t, 5000, accept.HeartbeatMillis)
		go func() { _, _ = io.Copy(io.Discard, c) }()

		sessions := make([]*Session, 3)
		events := make(chan Event, 8)
		each(3, func(rank int) (err error) {
			if rank == 1 {
				return nil
			}
			cfg := Config{Rank: rank, Size: 3}
			if rank == 0 {
				cfg.OnEvent = func(e Event) { events <- e }
			}
			sessions[rank], err = Join(t.Context(), root.ID(), cfg)
			require.NoError(t, err)
			return nil
		})
		time.Sleep(10 * time.Minute)
		require.Equal(t, Event{Kind: Lost, Rank: 1, Text: "no sign of life for 15s", Host: "mute", PID: 5}, <-events)
		require.Empty(t, events, "ranks that only had nothing to say are still there")
		require.NoError(t, sessions[0].Send(t.Context(), 2, 0, []byte("hello")))
		_, err = sessions[2].Recv(t.Context(), 0, 0)
		require.NoError(t, err)
		require.NoError(t, sessions[2].Close())
		require.NoError(t, sessions[0].Close())
		require.NoError(t, <-served)
		require.NoError(t, root.Close())
		require.NoError(t, c.Close())
	})
}

func TestLingerBoundsTheWaitForTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root, err := ListenLocal(RootOptions{Size: 2, Linger: 10 * time.Second})
		require.NoError(t, err)
		served := make(chan error)
		go func() { served <- root.Serve(t.Context()) }()
		sessions := make([]*Session, 2)
		each(2, func(rank int) (err error) {
			sessions[rank], err = Join(t.Context(), root.ID(), Config{Rank: rank, Size: 2})
			return err
		})
		require.NoError(t, sessions[0].Close())
		err = <-served
		require.ErrorIs(t, err, goccl.ErrTimeout)
		require.ErrorContains(t, err, "rank 1 did not leave within 10s")
		require.NoError(t, sessions[1].Close())
	})
}

func TestCloseIsBoundedWhenTheRootIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		cfg, err := Config{Rank: 1, Size: 2}.complete(mustID(t, 2))
		require.NoError(t, err)
		s := newSession(cfg, newLink(near), acceptNothing)
		s.begin(twoMembers)
		waiting := make(chan error)
		go func() { waiting <- s.Barrier(t.Context()) }()
		synctest.Wait()
		require.NoError(t, s.Close())
		require.True(t, errors.Is(<-waiting, goccl.ErrClosed))
		require.NoError(t, far.Close())
	})
}

func TestDeadlineWithASilentRootIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		cfg, err := Config{Rank: 1, Size: 2, Timeout: time.Minute}.complete(mustID(t, 2))
		require.NoError(t, err)
		s := newSession(cfg, newLink(near), acceptNothing)
		s.begin(twoMembers)
		_, err = s.AllGather(t.Context(), []byte("x"))
		require.ErrorIs(t, err, goccl.ErrTimeout)
		require.ErrorContains(t, err, "rank 1: all-gather #1: peer 0 (host a, pid 1): ")
		require.ErrorContains(t, err, "the root did not say which ranks are missing")
		require.NoError(t, far.Close())
		require.NoError(t, s.Close())
	})
}
