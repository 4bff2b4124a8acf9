package goccl_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/internal/golden"
)

// full is an Error with every field set.
func full() *goccl.Error {
	return &goccl.Error{Op: "allreduce", Group: "world", Transport: "shm", PeerAddr: "node-b, pid 41", Seq: 12, Rank: 1, Peer: 3, Channel: 2,
		Missing: []int{3, 5}, Hint: "look at rank 3's log", Err: goccl.ErrTimeout}
}

// The texts of errors are read by people and searched for in logs; a change of
// one shows here.
func TestErrorTexts(t *testing.T) {
	connect := goccl.NewError("connect", fmt.Errorf("%w: connection reset", goccl.ErrPeerLost))
	connect.Rank, connect.Peer, connect.PeerAddr, connect.Transport = 0, 2, "10.0.0.2:4000", "net/socket"
	missing := goccl.NewError("barrier", goccl.ErrTimeout)
	missing.Group, missing.Seq, missing.Missing = "dp", 7, []int{4}
	var b strings.Builder
	for _, c := range []struct {
		name string
		err  error
	}{
		{"all fields", full()},
		{"only a cause", goccl.NewError("", goccl.ErrClosed)},
		{"no cause", goccl.NewError("init", nil)},
		{"a lost peer", connect},
		{"one missing rank", missing},
		{"wrapped", fmt.Errorf("step 40: %w", full())},
		{"unknown element type", second(goccl.ParseDType("float"))},
		{"unknown reduction", second(goccl.ParseReduceOp("mean"))},
		{"unknown collective", second(goccl.ParseCollective("all_reduce"))},
		{"unknown algorithm", second(goccl.ParseAlgorithm("nvls"))},
		{"unknown protocol", second(goccl.ParseProtocol("ll128"))},
	} {
		fmt.Fprintf(&b, "%s:\n    %v\n", c.name, c.err)
		require.NotContains(t, c.err.Error(), "\n", "%s: an error is one line", c.name)
	}
	golden.File(t, "testdata/errors.txt", b.String())
}

func second[T any](_ T, err error) error { return err }

func TestErrorsMatch(t *testing.T) {
	sentinels := []error{goccl.ErrTimeout, goccl.ErrPeerLost, goccl.ErrMismatch, goccl.ErrAborted, goccl.ErrClosed, goccl.ErrUnsupported, goccl.ErrInvalid}
	for i, s := range sentinels {
		e := goccl.NewError("reduce", fmt.Errorf("%w: by %w", s, io.ErrUnexpectedEOF))
		wrapped := fmt.Errorf("outer: %w", e)
		for j, other := range sentinels {
			require.Equal(t, i == j, errors.Is(wrapped, other), "%v and %v", s, other)
		}
		require.ErrorIs(t, wrapped, io.ErrUnexpectedEOF)
		var as *goccl.Error
		require.ErrorAs(t, wrapped, &as)
		require.Same(t, e, as)
	}
}

func TestNewErrorLeavesRanksOut(t *testing.T) {
	e := goccl.NewError("gather", goccl.ErrAborted)
	require.Equal(t, &goccl.Error{Op: "gather", Rank: -1, Peer: -1, Channel: -1, Err: goccl.ErrAborted}, e)
}

func TestRanks(t *testing.T) {
	require.Equal(t, "rank 3", goccl.Ranks([]int{3}))
	require.Equal(t, "ranks 1, 4, 5", goccl.Ranks([]int{1, 4, 5}))
}
