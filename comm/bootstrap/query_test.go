package bootstrap

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestQueryAsksRanksThatAreStuck(t *testing.T) {
	overTransports(t, func(t *testing.T, tr string) {
		const n = 4
		hang := make(chan struct{})
		w := newWorld(t, tr, n, func(c *Config) {
			rank := c.Rank
			c.Status = func() []byte {
				if rank == 2 {
					<-hang
				}
				return fmt.Appendf(nil, "status of %d", rank)
			}
		})
		t.Cleanup(func() { close(hang) })
		require.NoError(t, w.sessions[3].Close())
		require.Equal(t, Left, w.logs[0].next(t).Kind)

		// Rank 1 sits in a call; its session answers all the same. Rank 2's callback hangs.
		stuck := make(chan struct{})
		go func() { defer close(stuck); _, _ = w.sessions[1].Recv(t.Context(), 0, 5) }()
		ctx, cancel := context.WithCancel(t.Context())
		var got map[int][]byte
		done := make(chan struct{})
		go func() { defer close(done); got = w.sessions[0].Query(ctx) }()
		require.Eventually(t, func() bool {
			w.sessions[0].mu.Lock()
			defer w.sessions[0].mu.Unlock()
			q := w.sessions[0].queries[1]
			return q != nil && len(q.answers) == 2
		}, watchdog, 1e6)
		cancel()
		<-done
		require.Equal(t, map[int][]byte{0: []byte("status of 0"), 1: []byte("status of 1")}, got)
		require.NoError(t, w.sessions[1].Close())
		<-stuck
	})
}

func TestQueryReturnsWhenAllHaveAnswered(t *testing.T) {
	w := newWorld(t, "inproc", 3, func(c *Config) {
		rank := c.Rank
		c.Status = func() []byte { return []byte{byte(10 + rank)} }
	})
	require.Equal(t, map[int][]byte{0: {10}, 1: {11}, 2: {12}}, w.sessions[1].Query(testContext(t)))
	require.Empty(t, w.sessions[1].queries)
}
