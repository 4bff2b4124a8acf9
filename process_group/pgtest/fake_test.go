package pgtest_test

import (
	"testing"

	processgroup "github.com/goccl/goccl/process_group"
	"github.com/goccl/goccl/process_group/backend/fake"
	"github.com/goccl/goccl/process_group/pgtest"
)

// TestWorld runs the suite on the engine that is as plain as the reference: it
// shows that the suite itself and the layer of groups are right.
func TestWorld(t *testing.T) {
	pgtest.Run(t, "world", func(_ *testing.T, n int) []*processgroup.Group {
		return fake.Groups(n, processgroup.Config{})
	})
}
