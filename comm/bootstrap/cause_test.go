package bootstrap_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/bootstrap"
)

func TestCauseTravels(t *testing.T) {
	why := errors.New("no more data")
	e := goccl.NewError("allreduce", fmt.Errorf("%w: %w", goccl.ErrTimeout, why))
	e.Seq, e.Missing, e.Peer = 7, []int{1, 3}, 3
	k := bootstrap.CauseFrom(bootstrap.CauseOf(e, 2, "host a, pid 5").Text(), 2)
	there := k.Err(0, "world", nil)
	require.EqualError(t, there, e.Error(), "one sentence on all ranks")
	require.ErrorIs(t, there, goccl.ErrTimeout)
	require.NotErrorIs(t, there, why)
	var got *goccl.Error
	require.ErrorAs(t, there, &got)
	require.Equal(t, []int{1, 3}, got.Missing)
	require.Equal(t, []any{0, 3, uint64(7), "world", "allreduce"}, []any{got.Rank, got.Peer, got.Seq, got.Group, got.Op})
	require.ErrorIs(t, k.Err(2, "world", e), why, "where it arose")

	k = bootstrap.CauseOf(why, 2, "host a, pid 5")
	require.Equal(t, "goccl: rank 2 (host a, pid 5) failed: no more data", k.Sentence)
	require.ErrorIs(t, k.Err(0, "world", nil), goccl.ErrAborted)
	require.Equal(t, bootstrap.Cause{Kind: "aborted", Peer: 4, Sentence: "{not JSON"}, bootstrap.CauseFrom("{not JSON", 4))

	lost := bootstrap.LostCause(bootstrap.Event{Kind: bootstrap.Lost, Rank: 1, Text: "killed", Host: "b", PID: 9})
	require.EqualError(t, lost.Err(0, "world", nil), "goccl: rank 1 (host b, pid 9) is gone: killed; look into that rank's own log")
	require.ErrorIs(t, lost.Err(0, "world", nil), goccl.ErrPeerLost)
}
