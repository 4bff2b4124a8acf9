package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/device/cuda"
)

func TestLedger(t *testing.T) {
	const sms = 132
	a, b := cuda.UUID{1}, cuda.UUID{2}
	g := grants{taken: map[cuda.UUID]int{}}
	require.Equal(t, 64, g.take(a, sms, 64), "what it wants")
	require.Equal(t, 34, g.take(a, sms, 64), "half of what is left")
	require.Equal(t, 66, g.take(b, sms, 128), "another GPU, and half of that")
	total := 98
	for range 5 {
		total += g.take(a, sms, 64)
	}
	require.LessOrEqual(t, total, sms)
	require.GreaterOrEqual(t, g.take(a, 1, 64), 1, "never nothing")
	g.giveBack(b, 66)
	require.Equal(t, 64, g.take(b, sms, 64))
}
