package nccl

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	processgroup "github.com/goccl/goccl/process_group"
	"github.com/goccl/goccl/process_group/backend/nccl/libnccl"
)

// Backend runs a group's operations on a communicator of NCCL.
type Backend struct {
	cfg     Config
	lib     *libnccl.Library
	gpu     *gpu
	engine  *engine
	control *control
	words   translator
	word    device.Memory // of words
	buffers buffers

	once sync.Once
	err  error // of Close
}

var (
	_ processgroup.Backend   = (*Backend)(nil)
	_ processgroup.Joiner    = (*Backend)(nil)
	_ processgroup.Allocator = (*Backend)(nil)
	_ processgroup.Carrier   = (*Backend)(nil)
	_ processgroup.Exchanger = (*Backend)(nil)
)

// Name returns "nccl".
func (b *Backend) Name() string { return "nccl" }

// Transport implements processgroup.Carrier: NCCL does not tell what it uses.
func (b *Backend) Transport() string { return fmt.Sprintf("NCCL %v", b.lib.Version()) }

// Library returns the library that the backend runs on.
func (b *Backend) Library() *libnccl.Library { return b.lib }

// Comm returns the communicator, for calls of NCCL that a group does not have. NCCL
// takes one call at a time: while one is made, no operation of the group may be
// started and none be under way unless Config.Blocking is set, and nobody closes the
// group. What is called here neither the group's recorder nor its audit sees. The
// communicator stays the backend's.
func (b *Backend) Comm() *libnccl.Comm { return b.gpu.comm }

// Control returns the control plane of the group.
func (b *Backend) Control() processgroup.Control { return b.control }

// Attach implements processgroup.Backend.
func (b *Backend) Attach(op *processgroup.Op) { op.Impl = &job{op: op} }

// Start implements processgroup.Backend. NCCL chooses algorithm and protocol and
// does not tell.
func (b *Backend) Start(op *processgroup.Op) error {
	j := op.Impl.(*job)
	j.reset()
	var err error
	if j.calls, err = b.words.translate(j.calls[:0], op); err != nil {
		return err
	}
	b.control.log.add(op)
	op.Chose(goccl.Auto, goccl.AutoProto, 0)
	b.engine.start(j)
	return nil
}

// Test implements processgroup.Backend.
func (b *Backend) Test(op *processgroup.Op) (bool, error) { return b.engine.test(op.Impl.(*job)) }

// Wait implements processgroup.Backend.
func (b *Backend) Wait(ctx context.Context, op *processgroup.Op) error {
	j := op.Impl.(*job)
	for p := (patience{}); ; p.turn() {
		if done, err := b.engine.test(j); done {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("wait for %s: %w", op.Name(), context.Cause(ctx))
		}
	}
}

// Join implements processgroup.Joiner. It blocks while NCCL has not yet put the
// operation on its stream, which it does at once but for the first of their kind.
func (b *Backend) Join(op *processgroup.Op, s device.Stream) error {
	j := op.Impl.(*job)
	for p := (patience{}); !j.launched(); p.turn() {
		if done, err := b.engine.test(j); done {
			return err
		}
	}
	if j.phase.Load() == ended {
		return j.end(nil)
	}
	return b.gpu.join(j, s)
}

// Abort implements processgroup.Backend. Operations end when NCCL has stopped
// them, within seconds, so that nothing writes into their buffers afterwards.
func (b *Backend) Abort(cause error) { b.engine.abort(cause) }

// Exchange implements processgroup.Exchanger.
func (b *Backend) Exchange(ctx context.Context, data []byte) ([][]byte, error) {
	return b.control.exchange(ctx, data)
}

// Close implements processgroup.Backend. All ranks close at the same time.
func (b *Backend) Close() error {
	b.once.Do(func() { b.err = b.shut() })
	return b.err
}

func (b *Backend) shut() error {
	err := b.engine.close(b.cfg.Timeout)
	if !errors.Is(err, goccl.ErrTimeout) { // else NCCL still uses them
		b.gpu.free()
		err = errors.Join(err, b.word.Free())
	}
	return errors.Join(err, b.control.close())
}

// Waiting for the device: at first at once, since small operations take ten
// microseconds, then with sleeps that grow.
const (
	hotTurns   = 200
	firstSleep = 20 * time.Microsecond
	lastSleep  = time.Millisecond
)

// patience paces the questions of one wait.
type patience struct {
	turns int
	sleep time.Duration
}

func (p *patience) turn() {
	p.turns++
	if p.turns < hotTurns {
		runtime.Gosched()
		return
	}
	p.sleep = min(max(p.sleep+p.sleep/4, firstSleep), lastSleep)
	time.Sleep(p.sleep)
}
