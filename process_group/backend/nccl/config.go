package nccl

import (
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/device/cuda"
	"github.com/goccl/goccl/process_group/backend/nccl/libnccl"
)

// Config says what New makes a backend of. Size, Rank and Device are required.
type Config struct {
	Rank, Size int
	Name       string // of the group, for messages and NCCL's own log
	Job        string
	// Device is the GPU of this rank, opened by package device/cuda. No two ranks
	// may have the same one. It stays the caller's and outlives the backend.
	Device device.Device
	// Library is the path of libnccl.so.2; "": where the dynamic linker finds it.
	Library string
	// Blocking makes NCCL launch within the call, as NCCL itself does by default.
	// Otherwise a thread of NCCL launches: an operation takes some ten microseconds
	// longer, but no call ever waits for another rank, and joining and aborting
	// always end.
	Blocking bool
	// OnCaller runs each operation on the stream of its call, as NCCL does, and not
	// on the group's own. Later work on that stream then waits for it without Join,
	// and nothing overlaps. It implies Blocking, and the first operations of each
	// kind wait for the other ranks within the call.
	OnCaller bool
	// Symmetric registers the buffers of Group.NewBuffer on all ranks together
	// (NCCL 2.27 and later), which lets NCCL use its fastest kernels on them.
	Symmetric bool
	// Settings are NCCL's own for this communicator. All ranks give the same.
	Settings libnccl.Config
	Timeout  time.Duration // of joining, of collective allocation and of closing; 0: 10 minutes
	Logger   *slog.Logger  // nil: silent
}

const defaultTimeout = 10 * time.Minute

// fill checks cfg, puts defaults in and returns the device.
func (cfg *Config) fill() (*cuda.Device, error) {
	switch {
	case cfg.Size < 1 || cfg.Rank < 0 || cfg.Rank >= cfg.Size:
		return nil, fmt.Errorf("%w: rank %d of %d", goccl.ErrInvalid, cfg.Rank, cfg.Size)
	case cfg.Device == nil:
		return nil, fmt.Errorf("%w: backend nccl needs a GPU for each rank; give the device that device/cuda opened for this one", goccl.ErrInvalid)
	case cfg.Timeout < 0:
		return nil, fmt.Errorf("%w: a timeout of %v", goccl.ErrInvalid, cfg.Timeout)
	}
	dev, ok := cfg.Device.(*cuda.Device)
	if !ok {
		return nil, fmt.Errorf("%w: backend nccl runs on devices of package device/cuda, not on %v (%T)", goccl.ErrUnsupported, cfg.Device.ID(), cfg.Device)
	}
	if cfg.Name == "" {
		cfg.Name = "nccl"
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.Blocking = cfg.Blocking || cfg.OnCaller
	return dev, nil
}

// settings are the ones for NCCL, completed.
func (cfg *Config) settings(v libnccl.Version) libnccl.Config {
	s := cfg.Settings
	blocking := 0
	if cfg.Blocking {
		blocking = 1
	}
	s.Int(libnccl.Blocking, blocking)
	if v >= libnccl.CommName.Since() && !s.Has(libnccl.CommName) {
		s.Text(libnccl.CommName, cfg.Name)
	}
	return s
}

// option takes one setting by name: NCCL's own names of fields, and "library", "onCaller" and "symmetric".
func (cfg *Config) option(name, value string) error {
	switch name {
	case "library":
		cfg.Library = value
		return nil
	case "blocking":
		return boolean(&cfg.Blocking, name, value)
	case "onCaller":
		return boolean(&cfg.OnCaller, name, value)
	case "symmetric":
		return boolean(&cfg.Symmetric, name, value)
	}
	return cfg.Settings.Set(name, value)
}

func boolean(into *bool, name, value string) error {
	b, err := strconv.ParseBool(value)
	if err != nil {
		return fmt.Errorf("%w: option %s of backend nccl is %q, neither 0 nor 1", goccl.ErrInvalid, name, value)
	}
	*into = b
	return nil
}
