package processgroup_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	processgroup "github.com/goccl/goccl/process_group"
	"github.com/goccl/goccl/process_group/backend/fake"
	"github.com/goccl/goccl/trace"
)

// eventually waits for what another goroutine does; the limit is for a hang.
func eventually(t *testing.T, ok func() bool, what string) {
	require.Eventually(t, ok, time.Minute, time.Millisecond, what)
}

// TestWatchdogSleepsAndWakes holds that it ticks only while there is work, and is
// there again when work comes.
func TestWatchdogSleepsAndWakes(t *testing.T) {
	g := processgroup.New(processgroup.Config{Name: "g", Size: 2, Backend: fake.Immediate()})
	defer func() { require.NoError(t, g.Close()) }()
	processgroup.SetTick(g, time.Millisecond)
	require.False(t, processgroup.Armed(g))
	for range 3 {
		g.AllReduce(f32(1), goccl.Sum) // nobody waits
		require.True(t, processgroup.Armed(g))
		eventually(t, func() bool { return g.Health().InFlight == 0 }, "settled by the watchdog")
		eventually(t, func() bool { return !processgroup.Armed(g) }, "asleep")
	}
}

func TestWatchdogStaysWhileWorkIsUnderWay(t *testing.T) {
	g, b := fake.Group(0, 2)
	defer func() { require.NoError(t, g.Close()) }()
	processgroup.SetTick(g, time.Millisecond)
	w := g.AllReduce(f32(1), goccl.Sum)
	done := w.Done()
	for range 3 * 10 { // longer than it takes to fall asleep
		time.Sleep(time.Millisecond)
	}
	require.True(t, processgroup.Armed(g))
	b.Complete(nil)
	<-done
}

// late begins its operations after their Start has returned, and ends those that
// the test allows.
type late struct {
	processgroup.Backend
	begin, end bool
}

func (l *late) Start(*processgroup.Op) error { return nil }

func (l *late) Test(op *processgroup.Op) (bool, error) {
	if l.begin {
		op.Began(goccl.Ring, goccl.Simple, 200)
		l.begin = false
	}
	return l.end, nil
}

// Wait gives up at once, though the operation may have ended meanwhile.
func (l *late) Wait(ctx context.Context, _ *processgroup.Op) error {
	return fmt.Errorf("late: %w", context.Cause(ctx))
}

func TestBegunLater(t *testing.T) {
	l := &late{Backend: fake.New()}
	g := processgroup.NewQuiet(processgroup.Config{Name: "g", Size: 2, Backend: l})
	defer func() { require.NoError(t, g.Close()) }()
	w := g.AllReduce(f32(1), goccl.Sum)
	i := w.Info()
	require.Equal(t, trace.Queued, i.State)
	require.Empty(t, i.Algo)
	require.True(t, i.Started.IsZero())

	l.begin = true
	processgroup.Tick(g, 0)
	i = w.Info()
	require.Equal(t, trace.Started, i.State)
	require.Equal(t, []any{"ring", "simple", 127}, []any{i.Algo, i.Proto, i.Channels})
	require.False(t, i.Started.Before(i.Queued))

	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("no patience")
	cancel(why)
	require.ErrorIs(t, w.Wait(ctx), why)
	l.end = true
	require.NoError(t, w.Wait(ctx), "it had ended when the context did")
	require.Equal(t, trace.Done, w.Info().State)
	require.Equal(t, "ring", w.Info().Algo)
	require.Equal(t, 1, processgroup.FreeOps(g))
}

func TestLagsInWords(t *testing.T) {
	for want, l := range map[string]processgroup.Lag{
		"rank 1 (box) is gone [killed], last at #3":  {Rank: 1, Host: "box", Seq: 3, State: trace.Gone, What: "killed"},
		"rank 2 (pid 7) does not answer, last at #0": {Rank: 2, PID: 7, State: trace.NoAnswer},
	} {
		require.Equal(t, want, l.String())
	}
}
