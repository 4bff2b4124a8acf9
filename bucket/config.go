package bucket

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
)

// Config says how gradients are bucketed. The zero value is good. All ranks give
// the same, but for Logger and Device.
type Config struct {
	// FirstBytes is the size at which the bucket that fires first closes: small,
	// so that the wire is busy early. 0 is 1 MiB, or Bytes where that is less.
	FirstBytes int64
	// Bytes is the size at which the others close. 0 is 25 MiB.
	Bytes int64
	// NoRebuild keeps the buckets in reverse order of registration. Without it
	// they are laid out once more after the first step, in the order in which
	// gradients became ready on rank 0.
	NoRebuild bool
	// FindUnused lets a rank finish a step in which some gradients never became
	// ready: they count as zero. It costs one small operation a step, and a
	// bucket with such a gradient starts only in Finish.
	FindUnused bool
	// Uneven lets ranks run out of input at different steps: see Reducer.Join.
	// It costs one small operation a step.
	Uneven bool
	// Device is what the gradients and values lie on, opened by the caller, who keeps
	// it until after Close; nil for host memory. All ranks of g have one.
	Device device.Device
	// SyncFrom is the rank whose values New gives to all. NoSyncValues leaves
	// every rank its own.
	SyncFrom     int
	NoSyncValues bool
	// Hook reduces a bucket; nil averages it with one AllReduce.
	Hook Hook
	// StallAfter is the time in Finish after which a warning names what it
	// waits for. 0 is 60 s, negative is never. It ends nothing: the group's
	// Timeout does.
	StallAfter time.Duration
	// Logger takes that warning. Nil is silent.
	Logger *slog.Logger
}

const (
	defaultFirstBytes = 1 << 20
	defaultBytes      = 25 << 20
	defaultStallAfter = 60 * time.Second
)

// withDefaults checks c and fills in what is zero.
func (c Config) withDefaults(ranks int) (Config, error) {
	if c.FirstBytes < 0 || c.Bytes < 0 {
		return c, fmt.Errorf("%w: bucket sizes of %d and %d bytes", goccl.ErrInvalid, c.FirstBytes, c.Bytes)
	}
	if c.Bytes == 0 {
		c.Bytes = defaultBytes
	}
	if c.FirstBytes == 0 {
		c.FirstBytes = min(defaultFirstBytes, c.Bytes)
	}
	if c.SyncFrom < 0 || c.SyncFrom >= ranks {
		return c, fmt.Errorf("%w: SyncFrom is rank %d of a group of %d", goccl.ErrInvalid, c.SyncFrom, ranks)
	}
	if c.StallAfter == 0 {
		c.StallAfter = defaultStallAfter
	}
	if c.Hook == nil {
		c.Hook = averageHook{}
	}
	return c, nil
}

// limits is what assign closes buckets at.
func (c Config) limits() []int64 { return []int64{c.FirstBytes, c.Bytes} }
