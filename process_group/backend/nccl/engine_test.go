package nccl

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	processgroup "github.com/goccl/goccl/process_group"
	"github.com/goccl/goccl/process_group/backend/nccl/libnccl"
)

func engineOn(t *testing.T, d *double) *engine {
	e := newEngine(d, member{group: "g", rank: 1, size: 2}, slog.New(slog.DiscardHandler))
	t.Cleanup(e.dismiss)
	return e
}

func someJob(seq uint64) *job {
	return &job{op: &processgroup.Op{Coll: goccl.AllReduce, Seq: seq}}
}

// until waits for what another goroutine does.
func until(t *testing.T, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, 30*time.Second, time.Millisecond)
}

func ends(t *testing.T, e *engine, j *job) error {
	t.Helper()
	var err error
	until(t, func() bool {
		var done bool
		done, err = e.test(j)
		return done
	})
	return err
}

func TestJobsEndInTheirTime(t *testing.T) {
	d := &double{}
	e := engineOn(t, d)
	a, b := someJob(1), someJob(2)
	e.start(a)
	e.start(b)
	require.Equal(t, []*job{a, b}, d.launched, "at once, in order")
	require.Empty(t, d.sealed, "launch has sealed them")
	for _, j := range []*job{a, b} {
		done, err := e.test(j)
		require.False(t, done)
		require.NoError(t, err)
		require.True(t, j.launched())
	}
	d.finish(a)
	require.NoError(t, ends(t, e, a))
	done, _ := e.test(b)
	require.False(t, done)
	d.finish(b)
	require.NoError(t, ends(t, e, b))

	a.reset() // the group uses it again
	d.with(func() { d.done[a] = false })
	e.start(a)
	done, _ = e.test(a)
	require.False(t, done)
	d.finish(a)
	require.NoError(t, ends(t, e, a))
	require.NoError(t, e.close(time.Minute))
	require.Equal(t, 1, d.closes)
	e.abort(errors.New("a peer left a moment later"))
	require.Zero(t, d.aborts, "what is freed is not aborted")
	launched := d.count()
	e.start(b)
	require.Equal(t, launched, d.count())
}

// A communicator that does not block launches in its own thread. Start returns, and
// what follows keeps its place.
func TestLaunchInTheBackground(t *testing.T) {
	d := &double{answer: libnccl.InProgress, behind: libnccl.InProgress}
	e := engineOn(t, d)
	a, b := someJob(1), someJob(2)
	e.start(a)
	e.start(b)
	require.Equal(t, 1, d.count(), "NCCL allows one thing at a time")
	require.False(t, a.launched())
	d.finish(a)
	done, _ := e.test(a)
	require.False(t, done, "its mark is not on the stream yet")
	d.with(func() { d.behind = libnccl.Success })
	until(t, func() bool { return b.launched() })
	require.Equal(t, []*job{a, b}, d.sealed)
	require.NoError(t, ends(t, e, a))
	d.finish(b)
	require.NoError(t, ends(t, e, b))
}

func TestCallsThatMayBlockAreTheRunners(t *testing.T) {
	d := &double{blocks: true, gate: make(chan struct{})}
	e := engineOn(t, d)
	a, b := someJob(1), someJob(2)
	e.start(a) // would hang here
	e.start(b)
	require.False(t, a.launched())
	close(d.gate)
	until(t, func() bool { return b.launched() })
	require.Equal(t, []*job{a, b}, d.launched)
}

func TestFailedLaunchEndsWhatFollows(t *testing.T) {
	why := &libnccl.Error{Call: "ncclAllReduce", Result: libnccl.InvalidUsage}
	d := &double{answer: libnccl.InvalidUsage, fails: why}
	e := engineOn(t, d)
	a, b := someJob(4), someJob(5)
	e.start(a)
	e.start(b)
	for _, j := range []*job{a, b} {
		err := ends(t, e, j)
		require.ErrorIs(t, err, why)
		require.ErrorIs(t, err, goccl.ErrInvalid)
		require.ErrorContains(t, err, `goccl: rank 1: allreduce #4 on group "g": via nccl: ncclAllReduce: ncclInvalidUsage`)
	}
	require.Len(t, d.launched, 1, "the peers have launched the first: the second would meet it")
}

func TestBackgroundFailureEndsAJob(t *testing.T) {
	d := &double{}
	e := engineOn(t, d)
	a := someJob(1)
	e.start(a)
	d.with(func() {
		d.behind, d.broken = libnccl.RemoteError, &libnccl.Error{Call: "x", Result: libnccl.RemoteError}
	})
	require.ErrorIs(t, ends(t, e, a), goccl.ErrPeerLost)

	lost := errors.New("the GPU has fallen off the bus")
	d = &double{device: lost}
	e = engineOn(t, d)
	e.start(a2(a))
	require.ErrorIs(t, ends(t, e, a), lost)
}

func a2(j *job) *job {
	j.reset()
	return j
}

func TestLaunchFailsInTheBackground(t *testing.T) {
	d := &double{answer: libnccl.InProgress, behind: libnccl.InProgress}
	e := engineOn(t, d)
	a, b := someJob(1), someJob(2)
	e.start(a)
	e.start(b)
	d.with(func() {
		d.behind, d.broken = libnccl.SystemError, &libnccl.Error{Call: "x", Result: libnccl.SystemError}
	})
	require.ErrorContains(t, ends(t, e, a), "ncclSystemError")
	require.ErrorContains(t, ends(t, e, b), "ncclSystemError")
	require.Equal(t, 1, d.count())
}

func TestAbortEndsAll(t *testing.T) {
	cause := errors.New("rank 0 is gone")
	for name, d := range map[string]*double{
		"running":    {},
		"launching":  {answer: libnccl.InProgress, behind: libnccl.InProgress},
		"in the way": {blocks: true, gate: closed()},
	} {
		t.Run(name, func(t *testing.T) {
			e := engineOn(t, d)
			a, b := someJob(1), someJob(2)
			e.start(a)
			e.start(b)
			e.abort(cause)
			e.abort(errors.New("a later cause"))
			late := someJob(3)
			e.start(late)
			for _, j := range []*job{a, b, late} {
				require.Equal(t, cause, ends(t, e, j))
			}
			<-e.over
			require.Equal(t, 1, d.aborts)
			require.NoError(t, e.close(time.Minute))
			require.Zero(t, d.closes, "the abort has freed it")
		})
	}
}

func closed() chan struct{} {
	ch := make(chan struct{})
	close(ch)
	return ch
}

// Buffers belong to a job until NCCL has been stopped, and a job that was done on
// the device after the abort counts as failed: its output may be half of one.
func TestAbortedJobsEndWhenNCCLHasStopped(t *testing.T) {
	d := &double{}
	e := engineOn(t, d)
	a := someJob(1)
	e.start(a)
	require.True(t, e.borrow(), "somebody is inside NCCL")
	cause := errors.New("stop")
	e.abort(cause)
	done, _ := e.test(a)
	require.False(t, done)
	d.finish(a)
	done, err := e.test(a)
	require.True(t, done)
	require.Equal(t, cause, err)
	e.drive(false)
	<-e.over
	require.Equal(t, 1, d.aborts)
}

// A call that waits for a rank that never comes keeps its communicator: freeing it
// under the call would crash the process. All else ends.
func TestAbortWhileNCCLIsStuck(t *testing.T) {
	d := &double{blocks: true, gate: make(chan struct{})}
	e := newEngine(d, member{group: "g", rank: 1, size: 2}, slog.New(slog.DiscardHandler))
	e.grace = 20 * time.Millisecond
	a, b := someJob(1), someJob(2)
	e.start(a)
	e.start(b)
	until(t, func() bool { d.mu.Lock(); defer d.mu.Unlock(); return d.inside == 1 })
	cause := errors.New("rank 0 is gone")
	e.abort(cause)
	require.Equal(t, cause, ends(t, e, a))
	require.Equal(t, cause, ends(t, e, b))
	err := e.close(time.Minute)
	require.ErrorIs(t, err, goccl.ErrTimeout)
	require.ErrorContains(t, err, "does not come back from a call; its communicator and GPU memory stay")
	require.Zero(t, d.aborts)
	require.Zero(t, d.closes)
	close(d.gate)
	<-e.stopped
	require.Equal(t, cause, ends(t, e, a), "it stays ended")
}

func TestCloseIsBounded(t *testing.T) {
	d := &double{hold: make(chan struct{})}
	e := newEngine(d, member{group: "g", rank: 1, size: 2}, slog.New(slog.DiscardHandler))
	err := e.close(20 * time.Millisecond)
	require.ErrorIs(t, err, goccl.ErrTimeout)
	require.ErrorContains(t, err, "NCCL does not free its communicator")
	close(d.hold)
	until(t, func() bool { d.mu.Lock(); defer d.mu.Unlock(); return d.closes == 1 })

	e = newEngine(&double{}, member{group: "g", rank: 1, size: 2}, slog.New(slog.DiscardHandler))
	require.True(t, e.borrow())
	require.False(t, e.borrow())
	require.ErrorContains(t, e.close(20*time.Millisecond), "does not come back from a call")
}

func TestAcquaintance(t *testing.T) {
	var a acquaintance
	first := []call{{fn: allReduce, count: 1000}}
	require.False(t, a.all(first))
	a.add(first)
	require.True(t, a.all([]call{{fn: allReduce, count: 600}}), "of one size")
	for _, c := range []call{{fn: allReduce, count: 3000}, {fn: allGather, count: 1000}, {fn: send, peer: 1}, {fn: broadcast, count: 1000}} {
		require.False(t, a.all([]call{c}), "%+v", c)
		a.add([]call{c})
		require.True(t, a.all([]call{c}))
	}
	require.True(t, a.all([]call{{fn: send, peer: 1, count: 1 << 20}}), "connected is connected")
	require.False(t, a.all([]call{{fn: recv, peer: 1}}))
	require.False(t, a.all([]call{{fn: allReduce, count: 1000}, {fn: allGather, count: 1000}}), "fused, they may take another way")
	require.True(t, a.all(nil))
}
