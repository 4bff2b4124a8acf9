package fake

import (
	"context"
	"fmt"
	"sync"

	"github.com/goccl/goccl"
	processgroup "github.com/goccl/goccl/process_group"
)

// World connects ranks of one process. All data moves under one lock, by whoever
// starts, tests or waits, in the order of the rules and with no other idea: it is
// to be right, not fast.
type World struct {
	mu      sync.Mutex
	ports   []*port
	changed chan struct{} // closed and replaced at each change that someone waits for
	waiting int
	broken  error // ranks disagree or one is lost: every operation ends with it
	control controlPlane
}

// Connect returns a world of n ranks.
func Connect(n int) *World {
	w := &World{ports: make([]*port, n), changed: make(chan struct{})}
	for r := range w.ports {
		w.ports[r] = &port{world: w, rank: r}
	}
	w.control.init(n)
	return w
}

// Groups returns the groups of all ranks of a new world, made from cfg: Name has
// the default "world", and Rank, Size, Backend and Control are set.
func Groups(n int, cfg processgroup.Config) []*processgroup.Group {
	return Connect(n).Groups(cfg)
}

// Groups returns the groups of all ranks; see the function Groups.
func (w *World) Groups(cfg processgroup.Config) []*processgroup.Group {
	if cfg.Name == "" {
		cfg.Name = "world"
	}
	gs := make([]*processgroup.Group, len(w.ports))
	for r := range gs {
		cfg.Rank, cfg.Size = r, len(w.ports)
		cfg.Backend, cfg.Control = w.ports[r], &side{world: w, rank: r}
		gs[r] = processgroup.New(cfg)
	}
	return gs
}

// Backends returns the ends of all ranks, for groups that are made otherwise.
func (w *World) Backends() []processgroup.Backend {
	bs := make([]processgroup.Backend, len(w.ports))
	for r, p := range w.ports {
		bs[r] = p
	}
	return bs
}

// Lose plays the death of a rank: all operations end with goccl.ErrPeerLost.
func (w *World) Lose(rank int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := goccl.NewError("", fmt.Errorf("%w: killed", goccl.ErrPeerLost))
	e.Peer, e.PeerAddr = rank, "this process"
	w.spoil(e)
	w.wake()
}

// spoil makes err the end of all operations. w.mu is held.
func (w *World) spoil(err error) {
	if w.broken == nil {
		w.broken = err
	}
	for _, p := range w.ports {
		p.endAll(w.broken)
	}
}

// wake tells all that wait for a change. w.mu is held.
func (w *World) wake() {
	if w.waiting > 0 {
		close(w.changed)
		w.changed = make(chan struct{})
		w.waiting = 0
	}
}

// step moves everything that can move. w.mu is held.
func (w *World) step() {
	for moved := true; moved && w.broken == nil; {
		moved = w.transfers()
		if w.broken == nil && w.collective() {
			moved = true
		}
		for _, p := range w.ports {
			moved = p.pop() || moved
		}
	}
	w.wake()
}

// port is the backend of one rank.
type port struct {
	world *World
	rank  int
	queue []*job // started and not ended; only the first moves
	begun uint64 // last collective started
	cause error  // given to Abort
}

var _ processgroup.Backend = (*port)(nil)

// job is what a port keeps about an operation, in Op.Impl.
type job struct {
	op        *processgroup.Op
	done      bool
	err       error
	coll      []*processgroup.Op // collectives in it, in order
	next      int                // the first of coll that has not run
	transfers []transfer
	left      int // transfers not matched
}

// transfer is one message of a job.
type transfer struct {
	processgroup.P2P
	tag     uint32
	matched bool
}

// Name returns "world".
func (p *port) Name() string { return "world" }

// Attach implements processgroup.Backend.
func (p *port) Attach(op *processgroup.Op) { op.Impl = &job{op: op} }

// Start implements processgroup.Backend.
func (p *port) Start(op *processgroup.Op) error {
	j := op.Impl.(*job)
	j.reset()
	w := p.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if !op.P2P() {
		p.begun = op.Seq
	}
	op.Chose(goccl.Direct, goccl.Simple, 1)
	switch {
	case p.cause != nil:
		j.done, j.err = true, p.cause
	case w.broken != nil:
		j.done, j.err = true, w.broken
	default:
		p.queue = append(p.queue, j)
		w.step()
	}
	return nil
}

// reset takes the operation apart into collectives and transfers.
func (j *job) reset() {
	j.done, j.err, j.next = false, nil, 0
	j.coll, j.transfers = j.coll[:0], j.transfers[:0]
	j.take(j.op)
	for _, part := range j.op.Parts {
		j.take(part)
	}
	j.left = len(j.transfers)
}

func (j *job) take(op *processgroup.Op) {
	switch {
	case len(op.Parts) > 0: // its parts follow
	case op.Coll != goccl.SendRecv:
		j.coll = append(j.coll, op)
	case op.Root < 0:
		for _, t := range op.Batch {
			j.transfers = append(j.transfers, transfer{P2P: t})
		}
	case op.Send:
		j.transfers = append(j.transfers, transfer{P2P: processgroup.P2P{Buf: op.Src, Peer: op.Root}, tag: op.Tag})
	default:
		j.transfers = append(j.transfers, transfer{P2P: processgroup.P2P{Buf: op.Dst, Peer: op.Root, Recv: true}, tag: op.Tag})
	}
}

// head returns the operation that may move, nil for none.
func (p *port) head() *job {
	if len(p.queue) == 0 {
		return nil
	}
	return p.queue[0]
}

// pop ends the head when all of it has moved.
func (p *port) pop() bool {
	j := p.head()
	if j == nil || j.next < len(j.coll) || j.left > 0 {
		return false
	}
	j.done = true
	p.queue = p.queue[1:]
	return true
}

func (p *port) endAll(err error) {
	for _, j := range p.queue {
		j.done, j.err = true, err
	}
	p.queue = nil
}

// Test implements processgroup.Backend.
func (p *port) Test(op *processgroup.Op) (bool, error) {
	w := p.world
	w.mu.Lock()
	defer w.mu.Unlock()
	j := op.Impl.(*job)
	return j.done, j.err
}

// Wait implements processgroup.Backend.
func (p *port) Wait(ctx context.Context, op *processgroup.Op) error {
	w, j := p.world, op.Impl.(*job)
	for {
		w.mu.Lock()
		if j.done {
			err := j.err
			w.mu.Unlock()
			return err
		}
		w.waiting++
		changed := w.changed
		w.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", op.Name(), context.Cause(ctx))
		}
	}
}

// Abort implements processgroup.Backend.
func (p *port) Abort(cause error) {
	w := p.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.cause == nil {
		p.cause = cause
	}
	p.endAll(p.cause)
	w.wake()
}

// Close implements processgroup.Backend.
func (p *port) Close() error { return nil }
