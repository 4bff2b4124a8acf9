package dist

import (
	"cmp"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm"
	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/dist/store"
	"github.com/goccl/goccl/internal/knob"
	processgroup "github.com/goccl/goccl/process_group"
	"github.com/goccl/goccl/process_group/backend"
)

// Config says how to join a job. The zero value is a job of one rank; FromEnv
// fills it from the environment, and what is set afterwards wins.
type Config struct {
	// Identity says which rank this process is; nil: the only one.
	Identity *Identity

	// Local, when there is no Identity, is how many ranks Run makes in this
	// process, as goroutines; 0: one.
	Local int

	// Addr is where rank 0 serves the store, "host:port". On a loopback address
	// the whole job stays on this machine.
	Addr string

	// Listener is an open listener at Addr for rank 0, which then owns it.
	Listener net.Listener

	// Store replaces the store at Addr; it stays the caller's to close. Jobs that
	// share one need different Job ids, also when one follows the other.
	Store store.Store

	// Job names the job: ranks of different jobs that meet refuse each other.
	Job string

	// Backend is what moves the data; "" and "ccl" are the library's own. Others
	// come with a blank import, such as that of process_group/backend/nccl.
	Backend string

	// Device is the GPU of this rank, which stays the caller's; nil for host memory.
	// Backend ccl needs a package that runs collectives on it, which a blank import
	// brings in.
	Device device.Device

	// ShareDevice lets ranks of one process use one GPU, if all of them agree. It is
	// for tests: their kernels share what the GPU can do.
	ShareDevice bool // GOCCL_SHARE_GPU

	// Options are settings of backends other than ccl, by the name of the backend
	// and its own for the setting, such as "nccl.maxCTAs". Those of other backends
	// than the one in use do nothing.
	Options map[string]string

	// Transport says which ways data may take.
	Transport Transport

	// Tuning fixes what would otherwise be chosen for each operation.
	Tuning Tuning

	// Wrap, when not nil, stands between every group and its backend, for tests and
	// instruments. It is called once for each group, with the group's name and this
	// rank in it.
	Wrap func(group string, rank int, b processgroup.Backend) processgroup.Backend

	// Timeout bounds joining, and how long an operation may be blocked before its
	// group aborts and names the ranks that are missing; 0: 10 minutes.
	Timeout time.Duration

	// Logger is told of blocked operations, failures and odd settings; nil: silent.
	Logger *slog.Logger

	// DumpDir is where every group that fails writes its flight recorder; "":
	// nowhere.
	DumpDir string

	// Diagnose writes the flight recorders of all groups on SIGUSR2 (where there is
	// such a signal) and after a timeout, into DumpDir or else the working folder.
	Diagnose bool

	warnings []knob.Warning // of FromEnv, for the Logger
	inherit  func() (net.Listener, bool, error)
	err      error // what was wrong with the environment
}

// Transport says which ways data may take. The zero value is good.
type Transport struct {
	// Interfaces chooses network interfaces: "eth,ib" are prefixes, "=eth0" is
	// exact, "^docker" means all but these; "": the one that leads to Addr.
	Interfaces string
	// PortRange bounds the ports to listen on, both ends included; zero: any.
	PortRange [2]int
	// HostID replaces what this machine is taken for: ranks with equal ones share
	// memory.
	HostID string
	// NoShm leaves shared memory between processes out.
	NoShm bool
	// Decorate, when not nil, replaces a group's transports by others, for example
	// by ones with a shaped link.
	Decorate func([]transport.Transport) []transport.Transport
}

// Tuning fixes what would otherwise be chosen for each operation. All ranks must
// agree on it; a difference is an error that names the setting, the values and
// the ranks.
type Tuning struct {
	Algorithm   goccl.Algorithm // GOCCL_ALGO
	Protocol    goccl.Protocol  // GOCCL_PROTO
	MaxChannels int             // GOCCL_MAX_CHANNELS; 0: no limit
	ChunkBytes  int             // GOCCL_CHUNK_BYTES; 0: chosen by size
	// Deterministic leaves Tuner out, so that the choice depends on sizes alone.
	Deterministic bool // GOCCL_DETERMINISTIC
	Tuner         comm.Tuner
}

// settings are what ranks must agree on, under the names of the environment.
func (t Tuning) settings() map[string]string {
	s := map[string]string{}
	if t.Algorithm != goccl.Auto {
		s["GOCCL_ALGO"] = t.Algorithm.String()
	}
	if t.Protocol != goccl.AutoProto {
		s["GOCCL_PROTO"] = t.Protocol.String()
	}
	if t.MaxChannels > 0 {
		s["GOCCL_MAX_CHANNELS"] = strconv.Itoa(t.MaxChannels)
	}
	if t.ChunkBytes > 0 {
		s["GOCCL_CHUNK_BYTES"] = strconv.Itoa(t.ChunkBytes)
	}
	if t.Deterministic {
		s["GOCCL_DETERMINISTIC"] = "1"
	}
	return s
}

// fill checks c and puts defaults in. Afterwards Identity is set and c's own.
func (c *Config) fill() error {
	if c.err != nil {
		return c.err
	}
	id := Identity{Size: 1, LocalSize: 1, Source: "caller"}
	if c.Identity != nil {
		id = *c.Identity
	}
	c.Identity = &id
	if err := id.check(); err != nil {
		return err
	}
	if c.Addr == "" {
		c.Addr = id.Addr
	}
	if err := c.checkBackend(); err != nil {
		return err
	}
	if c.Timeout < 0 {
		return fmt.Errorf("%w: a timeout of %v", goccl.ErrInvalid, c.Timeout)
	}
	if c.Timeout == 0 {
		c.Timeout = processgroup.DefaultTimeout
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// backendName returns what moves the data, "ccl" where nothing is said.
func (c *Config) backendName() string { return cmp.Or(c.Backend, "ccl") }

// own reports whether the library's own backend moves the data.
func (c *Config) own() bool { return c.backendName() == "ccl" }

func (c *Config) checkBackend() error {
	if c.own() {
		return nil
	}
	_, err := backend.Find(c.Backend)
	return err
}
