package bootstrap

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/wire"
)

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
