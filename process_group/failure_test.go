package processgroup_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	processgroup "github.com/goccl/goccl/process_group"
	"github.com/goccl/goccl/process_group/backend/fake"
)

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func errorIsAny(err error, kinds ...error) bool {
	for _, k := range kinds {
		if errors.Is(err, k) {
			return true
		}
	}
	return false
}

func held(t *testing.T, control processgroup.Control) (*processgroup.Group, *fake.Backend) {
	b := fake.New()
	g := processgroup.New(processgroup.Config{Name: "world", Size: 2, Backend: b, Control: control, Host: "box"})
	t.Cleanup(func() { g.Abort(nil); require.NoError(t, g.Close()); require.True(t, b.Closed()) })
	return g, b
}

func TestPeerFailureIsTheCauseOfAll(t *testing.T) {
	control := new(fake.Control)
	g, _ := held(t, control)
	w := g.AllReduce(f32(2), goccl.Sum, processgroup.Label("layer1.weight"))
	cause := errors.New("goccl: rank 1 (far, pid 9) failed: no more data")
	control.PeerFails(cause)
	g.Fail(errors.New("what this rank says later"))

	err := w.Wait(t.Context())
	require.ErrorIs(t, err, cause)
	require.Equal(t, cause.Error(), firstLine(err))
	require.Contains(t, err.Error(), `rank 0 was in allreduce #1 on group "world" (layer1.weight)`)
	require.Equal(t, cause, context.Cause(g.Context()))
	require.Equal(t, cause, g.Err())
	require.NoError(t, control.Told(), "the peers know")
	late := g.Broadcast(f32(1), 0).Wait(t.Context())
	require.Equal(t, cause.Error(), firstLine(late))
	done, again := w.Test()
	require.True(t, done)
	require.Equal(t, err, again)
	require.Equal(t, cause, g.MonitoredBarrier(t.Context()))
	_, err = g.NewBuffer(1, goccl.F32)
	require.Equal(t, cause, err)
}

func TestBackendFailureTellsPeers(t *testing.T) {
	control := new(fake.Control)
	g, b := held(t, control)
	first, second := g.AllReduce(f32(2), goccl.Sum), g.AllReduce(f32(2), goccl.Sum)
	lost := goccl.NewError("allreduce", goccl.ErrPeerLost)
	lost.Peer = 1
	require.True(t, b.Fail(lost))
	for _, w := range []processgroup.Work{second, first} {
		if w == second {
			done, err := w.Test()
			require.False(t, done)
			require.NoError(t, err)
			require.ErrorIs(t, first.Wait(t.Context()), goccl.ErrPeerLost)
		}
		err := w.Wait(t.Context())
		var e *goccl.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, 1, e.Peer)
		require.Equal(t, lost.Error(), firstLine(err))
	}
	require.Equal(t, lost, control.Told())
}

// unwilling refuses to start the second operation.
type unwilling struct {
	*fake.Backend
	err error
}

func (u unwilling) Start(op *processgroup.Op) error {
	if op.Seq == 2 {
		return u.err
	}
	return u.Backend.Start(op)
}

func TestStartThatFailsIsReportedWithoutAWaiter(t *testing.T) {
	control := new(fake.Control)
	u := unwilling{fake.New(), errors.New("no room")}
	g := processgroup.NewQuiet(processgroup.Config{Name: "world", Size: 2, Backend: u, Control: control})
	defer func() { require.NoError(t, g.Close()) }()
	first, second := g.AllReduce(f32(1), goccl.Sum), g.AllReduce(f32(1), goccl.Sum)
	require.True(t, u.Complete(nil))
	processgroup.Tick(g, 0)
	require.Equal(t, u.err, control.Told())
	require.NoError(t, first.Wait(t.Context()))
	require.ErrorIs(t, second.Wait(t.Context()), u.err)
}

func TestFailAndAbortNameThisRank(t *testing.T) {
	for did, stop := range map[string]func(g *processgroup.Group, err error){
		"failed":            func(g *processgroup.Group, err error) { g.Fail(err) },
		"aborted the group": func(g *processgroup.Group, err error) { g.Abort(err) },
	} {
		control := new(fake.Control)
		g, _ := held(t, control)
		w := g.AllReduce(f32(1), goccl.Sum)
		why := errors.New("disk full")
		stop(g, why)
		err := w.Wait(t.Context())
		require.ErrorIs(t, err, why)
		require.ErrorIs(t, err, goccl.ErrAborted)
		var f *processgroup.Failure
		require.ErrorAs(t, err, &f)
		require.Equal(t, "box", f.Host)
		require.Regexp(t, `^goccl: rank 0 \(box, pid \d+\) `+did+`: disk full$`, firstLine(err))
		require.Equal(t, firstLine(err), control.Told().Error())
	}
	g, _ := held(t, nil)
	g.Fail(nil)
	require.ErrorContains(t, g.Err(), "no reason given")
}

// referee is a control plane that knows of an earlier failure than it is told of.
type referee struct {
	*fake.Control
	first error
}

func (r referee) Decide(err error) error {
	r.Fail(err)
	return r.first
}

func TestTheFirstFailureOfAllRanksDecides(t *testing.T) {
	first := errors.New("goccl: rank 1 (far, pid 9) failed: earlier")
	r := referee{new(fake.Control), first}
	g, _ := held(t, r)
	w := g.AllReduce(f32(1), goccl.Sum)
	g.Fail(errors.New("a moment later"))
	require.Equal(t, first.Error(), firstLine(w.Wait(t.Context())))
	require.Equal(t, first, context.Cause(g.Context()))
	require.ErrorContains(t, r.Told(), "a moment later", "told once, by Decide")
}

func TestFailurePassesFromGroupToGroup(t *testing.T) {
	tp, world := fake.Groups(2, processgroup.Config{Name: "tp"}), fake.Groups(2, processgroup.Config{})
	inner, outer := tp[0].AllReduce(f32(1), goccl.Sum), world[1].AllReduce(f32(1), goccl.Sum)
	tp[1].Fail(errors.New("first line\nsecond line"))
	err := inner.Wait(t.Context())
	require.Regexp(t, `^goccl: rank 1 \(.*\) failed: first line$`, firstLine(err))
	world[0].Fail(err)
	require.Equal(t, firstLine(err), firstLine(outer.Wait(t.Context())), "the other group tells of the same rank")
	for _, g := range append(tp, world...) {
		require.NoError(t, g.Close())
	}
}

func TestCloseGivesUpOnWhatNeverEnds(t *testing.T) {
	g := processgroup.New(processgroup.Config{Name: "world", Size: 2, Backend: fake.New(), Timeout: 1})
	w := g.AllReduce(f32(1), goccl.Sum)
	require.NoError(t, g.Close())
	require.ErrorIs(t, w.Wait(t.Context()), goccl.ErrTimeout)
}

func TestC58AbortInParallel(t *testing.T) {
	a, b := fake.Groups(3, processgroup.Config{Name: "a"}), fake.Groups(3, processgroup.Config{Name: "b"})
	works := []processgroup.Work{a[0].AllReduce(f32(1), goccl.Sum), b[0].AllReduce(f32(1), goccl.Sum)}
	for _, g := range append(a, b...) {
		go g.Abort(errors.New("enough"))
		go g.Abort(errors.New("enough"))
	}
	for _, w := range works {
		require.ErrorIs(t, w.Wait(t.Context()), goccl.ErrAborted)
	}
	for _, g := range append(a, b...) {
		require.NoError(t, g.Close())
	}
}
