package ccl

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/goccl/goccl/comm"
	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/comm/transport/inproc"
	"github.com/goccl/goccl/comm/transport/net/socket"
	"github.com/goccl/goccl/comm/transport/shm"
	"github.com/goccl/goccl/device"
)

// Config is what New composes a backend from. Zero values are good except for
// Rank and Size.
type Config struct {
	Rank, Size int
	Name       string
	Job        string
	Tuner      comm.Tuner        // nil: package autotune's, with the default profile
	Force      Force             // overrules the tuner
	Settings   map[string]string // must be equal on all ranks, see comm.Config
	HostID     string            // overrides what this machine is taken for
	NoShm      bool              // leave shared memory between processes out
	InProcess  bool              // all ranks are in this process: no shared memory, no sockets
	// Device is the GPU of this rank; nil: host memory only. It stays the caller's. A
	// package with an accelerator for its kind must be part of the program.
	Device device.Device
	// ShareDevice lets several ranks use one device, which is else refused: they then
	// take turns, so it is for tests.
	ShareDevice bool
	Socket      socket.Config
	// Decorate, when not nil, replaces the transports by others, for example by
	// ones with a shaped link.
	Decorate func([]transport.Transport) []transport.Transport
	Timeout  time.Duration // of joining and of collective allocation
	Logger   *slog.Logger
}

// New joins the communicator that id names and returns a backend on it. It blocks
// until all ranks have joined, bounded by ctx and the timeout.
func New(ctx context.Context, id comm.UniqueID, cfg Config) (*Backend, error) {
	cfg, err := cfg.tuned()
	if err != nil {
		return nil, err
	}
	var ts []transport.Transport
	if cfg.Size > 1 {
		if ts, err = Transports(cfg); err != nil {
			return nil, err
		}
	}
	acc, err := cfg.accelerator()
	if err != nil {
		return nil, errors.Join(err, closeAll(ts))
	}
	c, err := comm.Init(ctx, id, comm.Config{Rank: cfg.Rank, Size: cfg.Size, Name: cfg.Name, Job: cfg.Job, Transports: ts, Tuner: cfg.Force.over(byMemory{cfg.Tuner}, cfg.Logger),
		Host: HostID(cfg.HostID), HostGiven: cfg.HostID != "", Settings: cfg.Settings, Accelerator: acc, Timeout: cfg.Timeout, NoTimeout: true, Logger: cfg.Logger})
	if err != nil {
		return nil, errors.Join(err, closeAll(ts))
	}
	return &Backend{c: c, close: func() error { return closeAll(ts) }}, nil
}

// Transports returns the transports of one rank in their order: the same process,
// the same machine, the network.
func Transports(cfg Config) ([]transport.Transport, error) {
	ts := []transport.Transport{inproc.New()}
	if cfg.InProcess {
		return cfg.decorate(ts), nil
	}
	if !cfg.NoShm && shm.Available() == nil {
		ts = append(ts, shm.New())
	}
	sc := cfg.Socket
	if sc.Logger == nil {
		sc.Logger = cfg.Logger
	}
	net, err := socket.New(sc)
	if err != nil {
		return nil, errors.Join(err, closeAll(ts))
	}
	return cfg.decorate(append(ts, net)), nil
}

func (cfg Config) decorate(ts []transport.Transport) []transport.Transport {
	if cfg.Decorate != nil {
		ts = cfg.Decorate(ts)
	}
	return ts
}

func closeAll(ts []transport.Transport) error {
	var errs []error
	for _, t := range ts {
		errs = append(errs, t.Close())
	}
	return errors.Join(errs...)
}
