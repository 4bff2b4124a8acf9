package clock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The cheap clock agrees with the system's within what it promises, however long
// the process has run.
func TestAgreesWithTheSystem(t *testing.T) {
	for time.Since(start) < 3*settle {
		Now()
		time.Sleep(settle / 2)
	}
	for range 100 {
		before := time.Since(start)
		now := time.Duration(Now())
		after := time.Since(start)
		slack := after/10_000 + 20*time.Microsecond // 100 ppm, a loose form of the promise
		require.GreaterOrEqual(t, now, before-slack)
		require.LessOrEqual(t, now, after+slack)
		Discipline()
	}
	require.Equal(t, counter, scale.Load() != 0)
}

func TestNeverGoesBackMuch(t *testing.T) {
	last := Now()
	for range 200_000 {
		now := Now()
		require.GreaterOrEqual(t, now, last-int64(50*time.Microsecond))
		last = now
	}
}

func TestNoAllocation(t *testing.T) {
	require.Zero(t, testing.AllocsPerRun(1000, func() { Now() }))
}

func BenchmarkNow(b *testing.B) {
	for b.Loop() {
		Now()
	}
}
