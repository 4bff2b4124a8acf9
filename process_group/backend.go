package processgroup

import (
	"context"
	"sync"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/trace"
)

// Backend moves the data of one group. It runs operations strictly in the order
// of Start, makes progress without further calls, and finds out by itself when
// ranks disagree or a peer is lost: Test and Wait then return a *goccl.Error
// that is the cause as far as this rank can know it.
//
// Start and Test are called under the lock of the group, Wait without it. Test,
// Wait and Abort may be called by any number of goroutines at once, also on the
// same Op, and go on returning the same result until the Op is started again.
type Backend interface {
	Name() string
	// Attach is called once for each Op that the group allocates, before its first Start.
	Attach(op *Op)
	// Start queues op and posts what it can; it never waits for a peer. An error
	// means that the operation did not start and never will.
	Start(op *Op) error
	// Test pushes progress and reports whether op has ended, and how. It never blocks.
	Test(op *Op) (bool, error)
	// Wait helps until op has ended. ctx bounds the wait only: when it ends, Wait
	// returns an error that wraps context.Cause(ctx), and the operation goes on.
	Wait(ctx context.Context, op *Op) error
	// Abort ends all operations, and those started later, with cause. It is called
	// without the lock, never blocks and is idempotent; the first cause stays.
	Abort(cause error)
	// Close frees what the backend holds. All operations have ended before.
	Close() error
}

// Locker is an optional ability of a Backend whose queue and the group then have
// one lock, so that a small operation, which costs little besides locked
// instructions, takes it once to start and twice to wait. The methods are called
// with it held and return with it held. TestLocked may give it up in between, and
// WaitLocked does while it waits; StartLocked does not.
type Locker interface {
	// Lock returns the lock, always the same.
	Lock() *sync.Mutex
	StartLocked(op *Op) error
	TestLocked(op *Op) (bool, error)
	WaitLocked(ctx context.Context, op *Op) error
}

// Control is what a group needs of the control plane. All methods are safe for
// concurrent use.
type Control interface {
	// Fail tells every rank that the group has failed with err. It does not wait
	// for them. Only the first call counts.
	Fail(err error)
	// OnFailure registers the function to call with the first cause, once: at
	// once when it is there already. It must not be called under a lock that Fail
	// or Backend.Abort takes.
	OnFailure(func(cause error))
	// MonitoredBarrier waits until all ranks are in it. When ctx ends before, it
	// returns all ranks that did not come and an error.
	MonitoredBarrier(ctx context.Context) (missing []int, err error)
	// Laggards asks, within ctx, who has not begun collective seq, and who is
	// stopped or gone whatever it has begun.
	Laggards(ctx context.Context, seq uint64) []Lag
}

// Referee is an optional ability of a Control: it tells every rank that the group
// has failed with err, as Fail does, and returns the first failure of the group,
// which is that one unless another rank was faster. So all ranks end with one
// cause. It waits for the answer for a second at most.
type Referee interface {
	Decide(err error) error
}

// Lag is a rank that an operation waits for; see trace.Lag.
type Lag = trace.Lag

// Allocator is an optional ability of a Backend: memory that makes its
// collectives faster, such as windows that peers map. NewBuffer is collective. The
// function it returns gives the memory back and is collective too.
type Allocator interface {
	NewBuffer(n int, d goccl.DType) (device.Buffer, func() error, error)
}

// Joiner is an optional ability of a Backend whose operations run on a device: s
// waits for op, the host does not.
type Joiner interface {
	Join(op *Op, s device.Stream) error
}

// Exchanger is an optional ability of a Backend that cannot move host memory: it
// gives every rank's data, at most 1 MiB, to all, by rank, beside its operations and
// in no order with them. All ranks call it, in one order.
type Exchanger interface {
	Exchange(ctx context.Context, data []byte) ([][]byte, error)
}

// Carrier is an optional ability of a Backend: it names what its data travels on,
// for example "shm", or "shm, net/socket" where that differs between peers.
type Carrier interface {
	Transport() string
}
