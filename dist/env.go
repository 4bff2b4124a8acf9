package dist

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync/atomic"

	"github.com/goccl/goccl/dist/launch"
	"github.com/goccl/goccl/internal/knob"
)

// Env finds out from environment variables which rank a process is. It is pure:
// lookup is os.LookupEnv or a test's. The bool says whether this kind of launcher
// is at work at all; an error, that it is and its variables make no sense.
type Env interface {
	Identify(lookup func(string) (string, bool)) (Identity, bool, error)
}

// FromEnv returns the Config that the environment of this process describes: who
// this rank is, as the first of envs says that knows (none: Torchrun), and the
// GOCCL_ settings. It logs to standard error from GOCCL_DEBUG on. What is wrong
// with the environment is an error of Init and Run.
func FromEnv(envs ...Env) Config {
	s, warnings, err := knob.FromProcess()
	if err != nil {
		return Config{err: err}
	}
	c := Config{
		Job:     s.JobID,
		Timeout: s.Timeout,
		Logger:  slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: s.Debug})),
		DumpDir: s.DumpDir,
		Transport: Transport{
			Interfaces: interfaces(s.SocketIfname),
			PortRange:  [2]int{int(s.PortRange.First), int(s.PortRange.Last)},
			HostID:     s.HostID,
			NoShm:      s.ShmDisable,
		},
		ShareDevice: s.ShareGPU,
		Tuning: Tuning{Algorithm: s.Algorithm, Protocol: s.Protocol, MaxChannels: s.MaxChannels, ChunkBytes: s.ChunkBytes,
			Deterministic: s.Deterministic},
		Backend:  s.Backend,
		Diagnose: true,
		warnings: warnings,
	}
	if s.NCCLLib != "" {
		c.Options = map[string]string{"nccl.library": s.NCCLLib}
	}
	c.Identity, c.err = identify(os.LookupEnv, envs)
	if c.Identity != nil && c.Identity.Rank == 0 && s.ListenFD >= 0 {
		c.inherit = func() (net.Listener, bool, error) { return inherited(os.LookupEnv) }
	}
	return c
}

// identify asks envs in order; nil when none of them knows.
func identify(lookup func(string) (string, bool), envs []Env) (*Identity, error) {
	if len(envs) == 0 {
		envs = []Env{Torchrun{}}
	}
	for _, e := range envs {
		id, ok, err := e.Identify(lookup)
		if err != nil {
			return nil, err
		}
		if ok {
			return &id, nil
		}
	}
	return nil, nil
}

// handed is set when a job of this process has had the launcher's listener: the
// next one opens the port itself.
var handed atomic.Bool

func inherited(lookup func(string) (string, bool)) (net.Listener, bool, error) {
	if handed.Swap(true) {
		return nil, false, nil
	}
	l, ok, err := launch.InheritedListener(lookup)
	if err != nil {
		return nil, false, fmt.Errorf("rank 0: init: %w", err)
	}
	return l, ok, nil
}

// interfaces writes the setting in the notation it was given in.
func interfaces(i knob.Interfaces) string {
	list := strings.Join(i.Names, ",")
	if list != "" && i.Exact {
		list = "=" + list
	}
	if list != "" && i.Exclude {
		list = "^" + list
	}
	return list
}
