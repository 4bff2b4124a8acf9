package nccl

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/process_group/backend/nccl/libnccl"
)

// Who has the turn waits until NCCL is done; what is started meanwhile comes
// after.
func TestSettledWaitsForNCCL(t *testing.T) {
	d := &double{behind: libnccl.InProgress}
	e := engineOn(t, d)
	require.True(t, e.borrow())
	done := make(chan error, 1)
	go func() { done <- e.settled(time.Minute) }()
	j := someJob(1)
	e.start(j)
	select {
	case err := <-done:
		t.Fatal("settled while NCCL is at work: ", err)
	case <-time.After(20 * time.Millisecond):
	}
	require.Zero(t, d.count())
	d.with(func() { d.behind = libnccl.Success })
	require.NoError(t, <-done)
	e.drive(false)
	require.Equal(t, 1, d.count())
}

// A call that NCCL does not come to the end of leaves a communicator that nothing can
// be asked of: what comes after fails with the same words, and does not reach NCCL.
func TestSettledIsBounded(t *testing.T) {
	d := &double{behind: libnccl.InProgress}
	e := engineOn(t, d)
	require.True(t, e.borrow())
	err := e.settled(10 * time.Millisecond)
	require.ErrorIs(t, err, goccl.ErrTimeout)
	require.ErrorContains(t, err, "not done after 10ms")
	require.Equal(t, err, e.settled(time.Minute), "not asked again")
	e.drive(false)
	j := someJob(1)
	e.start(j)
	require.Equal(t, err, ends(t, e, j))
	require.Zero(t, d.count())
}

func TestSettledEndsWithAnAbort(t *testing.T) {
	d := &double{behind: libnccl.InProgress}
	e := engineOn(t, d)
	require.True(t, e.borrow())
	cause := errors.New("rank 0 is gone")
	e.abort(cause)
	require.Equal(t, cause, e.settled(time.Hour))
	e.drive(false)
	until(t, e.isOver)
	require.Equal(t, 1, d.aborts)
}

func TestSettledTellsTheFailure(t *testing.T) {
	broken := errors.New("ncclSystemError")
	e := engineOn(t, &double{broken: broken, behind: libnccl.SystemError})
	require.True(t, e.borrow())
	require.Equal(t, broken, e.settled(time.Minute))
}
