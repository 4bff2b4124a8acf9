package processgroup_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	processgroup "github.com/goccl/goccl/process_group"
	"github.com/goccl/goccl/process_group/backend/fake"
	"github.com/goccl/goccl/trace"
)

func quiet(t *testing.T, timeout time.Duration) (*processgroup.Group, *fake.Backend, *fake.Control, *bytes.Buffer) {
	b, c, log := fake.New(), new(fake.Control), new(bytes.Buffer)
	g := processgroup.NewQuiet(processgroup.Config{Name: "world", Size: 4, Backend: b, Control: c, Timeout: timeout,
		Logger: slog.New(slog.NewTextHandler(log, nil)), DumpDir: t.TempDir()})
	t.Cleanup(func() { g.Abort(nil); require.NoError(t, g.Close()) })
	return g, b, c, log
}

func TestBlockedOperationNamesWhoIsLate(t *testing.T) {
	g, b, c, log := quiet(t, time.Minute)
	require.False(t, processgroup.Tick(g, 0), "there is no work")
	w := g.AllReduce(f32(1), goccl.Sum)
	behind := g.AllReduce(f32(1), goccl.Sum)
	late := processgroup.Lag{Rank: 2, Host: "box", PID: 77, Seq: 0, State: trace.Running}
	c.SetLaggards(late)
	require.True(t, processgroup.Tick(g, 400*time.Millisecond))
	require.Zero(t, c.Asked(), "too early to ask")
	require.Empty(t, w.Info().Waiting)

	processgroup.Tick(g, 600*time.Millisecond)
	require.Equal(t, []processgroup.Lag{late}, w.Info().Waiting)
	require.Equal(t, []processgroup.Lag{late}, behind.Info().Waiting)
	require.Equal(t, []processgroup.Lag{late}, g.Health().Waiting)
	require.Contains(t, log.String(), "rank 2 (box, pid 77) runs but has not called it, last at #0")
	processgroup.Tick(g, 700*time.Millisecond)
	require.Equal(t, 1, c.Asked())

	// It is stopped later on: that is news within two seconds.
	late.State, late.What = trace.Stopped, "SIGSTOP"
	c.SetLaggards(late)
	log.Reset()
	processgroup.Tick(g, 2*time.Second)
	require.Contains(t, log.String(), "rank 2 (box, pid 77) is stopped [SIGSTOP]")
	log.Reset()
	processgroup.Tick(g, 4*time.Second)
	require.Equal(t, 3, c.Asked())
	require.Empty(t, log.String(), "the same again is no news")

	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("bored"))
	require.ErrorContains(t, w.Wait(ctx), "rank 2 (box, pid 77) is stopped")

	b.Complete(nil)
	b.Complete(nil)
	require.False(t, processgroup.Tick(g, 5*time.Second))
	require.Empty(t, g.Health().Waiting)
	require.NoError(t, w.Wait(t.Context()))
}

func TestTimeoutNamesTheMissing(t *testing.T) {
	g, _, c, _ := quiet(t, time.Minute)
	w := g.AllReduce(f32(1), goccl.Sum)
	c.SetLaggards(processgroup.Lag{Rank: 1, State: trace.NoAnswer}, processgroup.Lag{Rank: 3, State: trace.Running, Seq: 0})
	processgroup.Tick(g, 59*time.Second)
	require.NoError(t, g.Err())
	processgroup.Tick(g, 61*time.Second)
	err := w.Wait(t.Context())
	require.ErrorIs(t, err, goccl.ErrTimeout)
	var e *goccl.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, []int{1, 3}, e.Missing)
	require.Equal(t, `goccl: allreduce #1 on group "world": timed out after 1m0s; missing ranks 1, 3; `+
		`rank 1 does not answer, last at #0, rank 3 runs but has not called it, last at #0`, firstLine(err))
	require.Equal(t, firstLine(err), c.Told().Error())
}

func TestTimeoutWithoutMissingRanks(t *testing.T) {
	g, _, _, _ := quiet(t, time.Minute)
	w := g.AllReduce(f32(1), goccl.Sum)
	processgroup.Tick(g, 2*time.Minute)
	require.ErrorContains(t, w.Wait(t.Context()), "all ranks have called it")
}

func TestTransferAsksAboutItsPeersOnly(t *testing.T) {
	g, _, c, _ := quiet(t, time.Minute)
	w := g.Coalesce(func() error {
		g.Recv(f32(1), 2)
		g.Send(f32(1), 3, processgroup.Tag(1))
		return nil
	})
	c.SetLaggards(processgroup.Lag{Rank: 1, State: trace.Stopped}, processgroup.Lag{Rank: 2, State: trace.Stopped}, processgroup.Lag{Rank: 3, State: trace.Gone})
	processgroup.Tick(g, time.Second)
	require.Len(t, w.Info().Waiting, 2)
	require.Equal(t, 2, w.Info().Waiting[0].Rank)
}

// TestC71BothSendFirst is the deadlock of two ranks that send before they receive:
// it ends at the timeout with what to do about it.
func TestC71BothSendFirst(t *testing.T) {
	gs := fake.Groups(2, processgroup.Config{Timeout: 50 * time.Millisecond})
	var works []processgroup.Work
	for r, g := range gs {
		works = append(works, g.Send(f32(1), 1-r), g.Recv(f32(1), 1-r))
	}
	for _, w := range works {
		err := w.Wait(t.Context())
		require.ErrorIs(t, err, goccl.ErrTimeout)
		require.ErrorContains(t, err, "BatchSendRecv or Coalesce")
		require.Equal(t, firstLine(gs[0].Err()), firstLine(err))
	}
	for _, g := range gs {
		require.NoError(t, g.Close())
	}
}

// TestDumpsOfAllRanksGiveAVerdict plays a rank that never calls an operation, and
// one that is stopped, through to the sentence about the dumps.
func TestDumpsOfAllRanksGiveAVerdict(t *testing.T) {
	for want, stopped := range map[string]bool{
		`never called allreduce #2`: false,
		`was stopped`:               true,
	} {
		dir := t.TempDir()
		world := fake.Connect(3)
		gs := world.Groups(processgroup.Config{Job: "j", Timeout: 100 * time.Millisecond, DumpDir: dir, Host: "box"})
		world.SetStopped(2, stopped)
		var works []processgroup.Work
		for _, g := range gs {
			works = append(works, g.AllReduce(f32(1), goccl.Sum))
		}
		for _, g := range gs[:2] {
			works = append(works, g.AllReduce(f32(1), goccl.Sum))
		}
		require.NoError(t, processgroup.WaitAll(t.Context(), works[:3]...))
		for _, w := range works[3:] {
			require.ErrorIs(t, w.Wait(t.Context()), goccl.ErrTimeout)
		}
		for _, g := range gs {
			require.NoError(t, g.Close()) // and the dump is written
		}
		dumps, err := trace.Load(dir)
		require.NoError(t, err)
		require.Len(t, dumps, 3, "also the rank that only heard of it")
		require.Contains(t, dumps[2].Reason, "timed out")
		require.Contains(t, dumps[0].Stacks, "goroutine")
		require.Equal(t, "j", dumps[0].Job)
		v := trace.Verdict(dumps)
		require.Contains(t, v, want)
		require.Contains(t, v, "rank 2 (")
	}
}

func TestForgottenWorkIsSettled(t *testing.T) {
	g, b, _, _ := quiet(t, time.Minute)
	for range 3 {
		g.AllReduce(f32(1), goccl.Sum)
	}
	for b.Complete(nil) {
	}
	require.Equal(t, 3, g.Health().InFlight)
	require.False(t, processgroup.Tick(g, 0))
	require.Zero(t, g.Health().InFlight)
	require.Equal(t, 3, processgroup.FreeOps(g))
}

func TestProgramThatNeverWaitsDoesNotGrow(t *testing.T) {
	g := processgroup.NewQuiet(processgroup.Config{Name: "g", Size: 2, Backend: fake.Immediate()})
	defer g.Close()
	b := device.SliceOf(make([]float32, 1))
	for range 10_000 {
		g.AllReduce(b, goccl.Sum)
	}
	require.Less(t, processgroup.FreeOps(g)+g.Health().InFlight, 100)
}
