package comm

import (
	"log/slog"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/bootstrap"
	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/device"
)

// UniqueID names a communicator that is about to form; see bootstrap.UniqueID.
type UniqueID = bootstrap.UniqueID

// Root is the rendezvous of a communicator; see bootstrap.Root.
type Root = bootstrap.Root

// RootOptions are the options of a Root.
type RootOptions = bootstrap.RootOptions

// ListenRoot and ListenLocal open a rendezvous: over TCP, or in memory for ranks
// of one process.
var (
	ListenRoot  = bootstrap.ListenRoot
	ListenLocal = bootstrap.ListenLocal
)

// Config says who this rank is and what it may use. Zero values are good except
// for Size and Transports, which a communicator of more than one rank needs.
type Config struct {
	Rank, Size int
	Name       string // for errors and logs; "" is "comm"
	Job        string // refused when the root's differs
	// Transports are tried in this order for every connection. Close does not
	// close them: they belong to the caller.
	Transports []transport.Transport
	Tuner      Tuner // nil: fixed thresholds
	// Host identifies the machine (memory, processes and network that can be
	// shared); ranks with equal values share memory. 0: ranks of other processes
	// are taken for remote.
	Host uint64
	// HostGiven says that a person chose Host: ranks with equal values that turn
	// out not to share memory are then an error, and not only slower.
	HostGiven bool
	// Accelerator runs operations on device memory; nil: host memory only. All ranks
	// have one, or none. The communicator owns it, also when Init fails.
	Accelerator Accelerator
	// Settings are the choices that must be equal on all ranks, by name. A
	// difference is an error that names setting, values and ranks.
	Settings map[string]string
	// Timeout bounds every operation from its start, and joining; 0: 10 minutes.
	Timeout time.Duration
	// NoTimeout leaves stopping late operations to the caller's watchdog.
	NoTimeout bool
	Logger    *slog.Logger
}

const defaultTimeout = 10 * time.Minute

// Request is what a Tuner may decide on: facts that are equal on all ranks.
type Request struct {
	Coll   goccl.Collective
	Bytes  int64 // of the whole buffer: for AllGather and the like all ranks' parts together
	DType  goccl.DType
	Op     goccl.ReduceOp // the kind
	Ranks  int
	Device device.Kind // of the memory
	Mapped bool        // all ranks map each other's memory
	Window bool        // input and output lie in shared windows
	// MaxOneShot is the most bytes of a one-shot message (of one rank's part for
	// AllGather).
	MaxOneShot int64
	// MaxChunk is the most bytes of a chunk by protocol.
	MaxChunkLL, MaxChunkSimple int64
	MaxChannels                int // 0: few
	Hosts                      int
	RanksPerHost               int  // the most ranks of one host
	Cores                      int  // the fewest cores that a host's ranks share
	InProcess                  bool // all ranks are goroutines of one process
}

// Decision is a Tuner's answer.
type Decision struct {
	Algo     goccl.Algorithm
	Proto    goccl.Protocol
	Channels int
	Chunk    int64 // bytes, a multiple of 512; 0: the most
}

// Tuner chooses algorithm and protocol. It must depend on the request alone, so
// that all ranks choose the same.
type Tuner interface {
	Choose(Request) (Decision, error)
}

// DefaultTuner returns the Tuner of a communicator that was given none, for
// tuners that overrule or complete it.
func DefaultTuner() Tuner { return thresholds{} }

// thresholds is the Tuner of a communicator that was given none.
type thresholds struct{}

// Choose implements Tuner.
func (thresholds) Choose(r Request) (Decision, error) {
	if r.Device != device.Host {
		return onDevice(r), nil
	}
	d := Decision{Algo: goccl.Direct, Proto: goccl.Simple, Channels: 1}
	part := r.Bytes
	if r.Coll == goccl.AllGather {
		part /= int64(max(r.Ranks, 1))
	}
	small := part <= r.MaxOneShot
	switch r.Coll {
	case goccl.Barrier:
		d.Algo, d.Proto = goccl.OneShot, goccl.LL
	case goccl.AllReduce, goccl.AllGather:
		switch {
		case small && r.Ranks <= 64:
			d.Algo, d.Proto = goccl.OneShot, goccl.LL
		case r.Ranks > 16:
			d.Algo = goccl.Ring
		case r.Coll == goccl.AllReduce:
			d.Algo = goccl.TwoShot
		}
	case goccl.ReduceScatter, goccl.Broadcast, goccl.Reduce:
		if r.Ranks > 16 {
			d.Algo = goccl.Ring
		}
	}
	if d.Algo != goccl.OneShot && r.Bytes/int64(max(r.Ranks, 1)) <= r.MaxChunkLL {
		d.Proto = goccl.LL
	}
	return d, nil
}

var _ Tuner = thresholds{}
