package bootstrap

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/wire"
)

func TestRanksSeeEachOther(t *testing.T) {
	overTransports(t, func(t *testing.T, tr string) {
		w := newWorld(t, tr, 4, nil)
		host, err := os.Hostname()
		require.NoError(t, err)
		for _, s := range w.sessions {
			require.Equal(t, 4, s.Size())
			for r, p := range s.Peers() {
				require.Equal(t, r, p.Rank)
				require.Equal(t, fmt.Sprintf("info %d", r), string(p.Info))
				require.Equal(t, host, p.Host)
				require.Equal(t, os.Getpid(), p.PID)
				require.NotEmpty(t, p.Addr)
			}
		}
	})
}

func TestAllGatherAndBarrier(t *testing.T) {
	overTransports(t, func(t *testing.T, tr string) {
		const n = 5
		w := newWorld(t, tr, n, nil)
		ctx := testContext(t)
		part := func(round, rank int) []byte {
			b := make([]byte, 1+round*rank*37)
			for i := range b {
				b[i] = byte(i*7 + rank*13 + round)
			}
			return b
		}
		for _, err := range each(n, func(rank int) error {
			for round := range 20 {
				got, err := w.sessions[rank].AllGather(ctx, part(round, rank))
				if err != nil {
					return err
				}
				for r := range n {
					if string(got[r]) != string(part(round, r)) {
						return fmt.Errorf("round %d: part %d is wrong", round, r)
					}
				}
				if err := w.sessions[rank].Barrier(ctx); err != nil {
					return err
				}
			}
			return nil
		}) {
			require.NoError(t, err)
		}
	})
}

func TestAllGatherOfTheLargestPart(t *testing.T) {
	w := newWorld(t, "tcp", 3, nil)
	ctx := testContext(t)
	for _, err := range each(3, func(rank int) error {
		b := make([]byte, wire.MaxData)
		b[len(b)-1] = byte(rank + 1)
		got, err := w.sessions[rank].AllGather(ctx, b)
		for r := range got {
			if got[r][wire.MaxData-1] != byte(r+1) {
				return fmt.Errorf("part %d is wrong", r)
			}
		}
		return err
	}) {
		require.NoError(t, err)
	}
	_, err := w.sessions[0].AllGather(ctx, make([]byte, wire.MaxData+1))
	require.ErrorIs(t, err, goccl.ErrInvalid)
}

// C22: parts of more than 256 ranks are all there, distinct and in order.
func TestC22AllGatherOf512Ranks(t *testing.T) {
	const n = 512
	w := newWorld(t, "tcp", n, nil)
	ctx := testContext(t)
	for _, err := range each(n, func(rank int) error {
		got, err := w.sessions[rank].AllGather(ctx, fmt.Appendf(nil, "id of %d", rank*31+7))
		if err != nil {
			return err
		}
		for r := range n {
			if string(got[r]) != fmt.Sprintf("id of %d", r*31+7) {
				return fmt.Errorf("rank %d: part %d is %q", rank, r, got[r])
			}
		}
		return nil
	}) {
		require.NoError(t, err)
	}
}

func TestMessagesKeepTheirOrder(t *testing.T) {
	overTransports(t, func(t *testing.T, tr string) {
		const n, count = 3, 60
		w := newWorld(t, tr, n, nil)
		ctx := testContext(t)
		for _, err := range each(n, func(rank int) error {
			s := w.sessions[rank]
			for i := range count {
				for peer := range n { // itself included
					if err := s.Send(ctx, peer, uint64(i%2), fmt.Appendf(nil, "%d to %d: %d", rank, peer, i)); err != nil {
						return err
					}
				}
			}
			for _, odd := range []int{1, 0} { // the other order: most wait unread
				for i := odd; i < count; i += 2 {
					for peer := range n {
						got, err := s.Recv(ctx, peer, uint64(odd))
						if err != nil {
							return err
						}
						if want := fmt.Sprintf("%d to %d: %d", peer, rank, i); string(got) != want {
							return fmt.Errorf("got %q, want %q", got, want)
						}
					}
				}
			}
			return nil
		}) {
			require.NoError(t, err)
		}
		require.Empty(t, w.sessions[0].mail.boxes, "used tags are forgotten")
		require.Zero(t, w.sessions[0].mail.unread)
	})
}

func TestRecvEndsWithItsContextAndLosesNothing(t *testing.T) {
	w := newWorld(t, "inproc", 2, nil)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := w.sessions[0].Recv(gone, 1, 3)
	require.ErrorIs(t, err, goccl.ErrAborted)
	require.ErrorContains(t, err, "recv: peer 1 (host ")
	ctx := testContext(t)
	require.NoError(t, w.sessions[1].Send(ctx, 0, 3, []byte("later")))
	got, err := w.sessions[0].Recv(ctx, 1, 3)
	require.NoError(t, err)
	require.Equal(t, "later", string(got))

	require.ErrorIs(t, w.sessions[0].Send(ctx, 2, 0, nil), goccl.ErrInvalid)
	require.ErrorIs(t, w.sessions[0].Send(ctx, 1, 0, make([]byte, wire.MaxData+1)), goccl.ErrInvalid)
	_, err = w.sessions[0].Recv(ctx, -1, 0)
	require.ErrorIs(t, err, goccl.ErrInvalid)
}

// C33: every rank that arrived learns all ranks that did not, when one rank's
// deadline passes; the barrier after that works.
func TestC33MonitoredBarrierNamesAllMissing(t *testing.T) {
	overTransports(t, func(t *testing.T, tr string) {
		const n = 5
		w := newWorld(t, tr, n, nil)
		ctx := testContext(t)
		short, cancel := context.WithCancel(ctx)
		var missing [n][]int
		early := make(chan []error)
		go func() {
			early <- each(n, func(rank int) (err error) {
				if rank%2 == 1 {
					return nil
				}
				use := ctx
				if rank == 4 {
					use = short
				}
				missing[rank], err = w.sessions[rank].MonitoredBarrier(use)
				return err
			})
		}()
		// A message that was sent behind a rank's arrival proves that the hub has it.
		for _, rank := range []int{0, 2, 4} {
			require.Eventually(t, func() bool {
				w.sessions[rank].mu.Lock()
				defer w.sessions[rank].mu.Unlock()
				return w.sessions[rank].seq == 1
			}, watchdog, 1e6)
			require.NoError(t, w.sessions[rank].Send(ctx, 1, 9, nil))
			_, err := w.sessions[1].Recv(ctx, rank, 9)
			require.NoError(t, err)
		}
		cancel()
		errs := <-early
		for _, rank := range []int{0, 2, 4} {
			require.ErrorIs(t, errs[rank], goccl.ErrTimeout)
			require.Equal(t, []int{1, 3}, missing[rank])
			require.Equal(t, errs[0].Error(), errs[rank].Error(), "one sentence on all ranks")
		}
		require.ErrorContains(t, errs[0], "monitored barrier #1: timed out: the deadline of rank 4 (host ")
		require.ErrorContains(t, errs[0], "missing ranks 1, 3")
		for _, rank := range []int{1, 3} { // the late ones hear the same
			late, err := w.sessions[rank].MonitoredBarrier(ctx)
			require.ErrorIs(t, err, goccl.ErrTimeout)
			require.Equal(t, []int{1, 3}, late)
		}
		for _, err := range each(n, func(rank int) error { return w.sessions[rank].Barrier(ctx) }) {
			require.NoError(t, err)
		}
	})
}

// C82: a world of one opens no socket and needs no hub.
func TestC82WorldOfOne(t *testing.T) {
	files := openFiles(t)
	before := files()
	root, err := ListenRoot(t.Context(), "", RootOptions{Size: 1})
	require.NoError(t, err)
	require.NoError(t, root.Serve(t.Context()))
	var events []Event
	s, err := Join(t.Context(), root.ID(), Config{Size: 1, Info: []byte("me"), Status: func() []byte { return []byte("fine") },
		OnEvent: func(e Event) { events = append(events, e) }})
	require.NoError(t, err)
	require.LessOrEqual(t, files(), before)

	ctx := testContext(t)
	got, err := s.AllGather(ctx, []byte("only"))
	require.NoError(t, err)
	require.Equal(t, [][]byte{[]byte("only")}, got)
	require.NoError(t, s.Barrier(ctx))
	missing, err := s.MonitoredBarrier(ctx)
	require.NoError(t, err)
	require.Empty(t, missing)
	require.NoError(t, s.Send(ctx, 0, 1, []byte("self")))
	data, err := s.Recv(ctx, 0, 1)
	require.NoError(t, err)
	require.Equal(t, "self", string(data))
	require.Equal(t, map[int][]byte{0: []byte("fine")}, s.Query(ctx))
	require.Equal(t, "me", string(s.Peers()[0].Info))
	s.Fail("enough")
	require.Len(t, events, 1)
	require.Equal(t, "enough", events[0].Text)
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	_, err = s.AllGather(ctx, nil)
	require.ErrorIs(t, err, goccl.ErrClosed)
	require.NoError(t, root.Close())
}
