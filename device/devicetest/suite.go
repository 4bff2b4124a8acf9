// Package devicetest is the contract that every device.Device keeps, as a suite
// of tests.
package devicetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/device"
)

// Config says how to get a device, and how to do with it what the interfaces do
// not offer.
type Config struct {
	// Open returns a device of its own.
	Open func(t *testing.T) device.Device
	// Gate queues work that does not end before open is called. open may be called
	// more than once.
	Gate func(t *testing.T, d device.Device, s device.Stream) (open func())
	// Host returns memory of the host that the device's streams can copy from and to
	// without making calls wait, until the test ends.
	Host func(t *testing.T, d device.Device, bytes int) []byte
	// The abilities that Caps names: each is tried, and must fail with
	// goccl.ErrUnsupported exactly when its bit is not set. nil is an ability that
	// the package cannot even name.
	PeerMap, StreamMemOps, Graphs, Multicast func(t *testing.T, d device.Device) error
}

// Run runs the suite.
func Run(t *testing.T, c Config) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, c Config)
	}{
		{"memory is zero, aligned and its own", memoryIsZero},
		{"sizes are checked", sizesAreChecked},
		{"free and close are idempotent", closeIsIdempotent},
		{"close is refused while in use", closeInUse},
		{"a stream keeps its order", streamOrder},
		{"a stream fills memory", streamFills},
		{"an event is not done before its work", eventAfterWork},
		{"a stream waits for another's event", crossStream},
		{"an event can be waited for after its release to a stream", releasedEvent},
		{"waiting ends with its context", waitEnds},
		{"foreign events are refused", foreignEvent},
		{"streams of every priority work", priorities},
		{"closed streams finish their work", closedStream},
		{"many goroutines use one device", concurrent},
		{"the capabilities are what it does", capabilities},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, c) })
	}
}

// open opens a device and closes it with the test, which fails when something
// was left.
func (c Config) open(t *testing.T) device.Device {
	t.Helper()
	d := c.Open(t)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

func alloc(t *testing.T, d device.Device, bytes int) device.Memory {
	t.Helper()
	m, err := d.Alloc(bytes)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Free()) })
	return m
}

func stream(t *testing.T, d device.Device) device.Stream {
	t.Helper()
	s, err := d.NewStream(0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}
