package faulty

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseLink(t *testing.T) {
	tests := []struct {
		text string
		want Link
	}{
		{"1Gbps,50us", Link{1e9, 50 * time.Microsecond}},
		{"200Mbps", Link{2e8, 0}},
		{"50us, 2.5Gbps", Link{2.5e9, 50 * time.Microsecond}},
		{"9600bps", Link{9600, 0}},
		{"64kbps,1m0s", Link{64e3, time.Minute}},
		{"3ms", Link{0, 3 * time.Millisecond}},
	}
	for _, test := range tests {
		got, err := ParseLink(test.text)
		require.NoError(t, err, test.text)
		require.Equal(t, test.want, got, test.text)
		again, err := ParseLink(got.String())
		require.NoError(t, err, got.String())
		require.Equal(t, got, again)
	}
	for _, bad := range []string{"", "fast", "1Gbps,2Gbps", "1ms,2ms", "-1Gbps", "0Mbps", "1GBps", "NaNbps", "Infbps", "-5us", "1Gbps,", "1 Gbps,,2us"} {
		_, err := ParseLink(bad)
		require.ErrorIs(t, err, errLink, bad)
	}
}

func FuzzParseLink(f *testing.F) {
	f.Add("1Gbps,50us")
	f.Add("200Mbps")
	f.Fuzz(func(t *testing.T, s string) {
		l, err := ParseLink(s)
		if err != nil {
			return
		}
		require.True(t, l.BitsPerSecond >= 0 && l.Latency >= 0 && l != Link{})
	})
}

// Connections of one pair share its link: bytes queue, latency does not.
func TestWireQueues(t *testing.T) {
	begin := time.Unix(1000, 0)
	w := wire{link: Link{BitsPerSecond: 8e6, Latency: 100 * time.Microsecond}} // a byte takes a microsecond
	at := func(us int) time.Time { return begin.Add(time.Duration(us) * time.Microsecond) }
	require.Equal(t, at(150), w.carry(begin, 50), "alone")
	require.Equal(t, at(180), w.carry(begin, 30), "behind the first")
	require.Equal(t, at(180), w.carry(at(60), 0), "nothing to send waits for what is before it")
	require.Equal(t, at(605), w.carry(at(500), 5), "an idle link saves nothing up")

	free := wire{link: Link{Latency: time.Second}}
	require.Equal(t, begin.Add(time.Second), free.carry(begin, 1<<30), "without a rate")
}
