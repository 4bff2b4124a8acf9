package exec

import (
	"fmt"
	"sync/atomic"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/plan/machine"
	"github.com/goccl/goccl/internal/spin"
)

// Args is one call of a Program.
type Args struct {
	In, Out uintptr
	Unit    int64  // bytes of the whole buffer (Whole) or of one block (PerRank)
	Sig     uint32 // signature of the operation; peers compare it with theirs
	Scale   float32
	Scaled  bool // multiply this rank's input by Scale
	InAt    Place
	OutAt   Place // window operations only
}

// Clash is the error of a message whose signature is another operation's.
type Clash struct {
	Peer int
	Sig  uint32 // the peer's
}

// Error says which peer sent it.
func (c *Clash) Error() string {
	return fmt.Sprintf("rank %d is in another operation (signature %08x)", c.Peer, c.Sig)
}

// Unwrap returns ErrMismatch.
func (c *Clash) Unwrap() error { return goccl.ErrMismatch }

// Run is one operation under way. The zero value is made ready by Begin and can
// be used again after it has finished. It belongs to one goroutine at a time.
type Run struct {
	x     *Exec
	b     *Bound
	args  Args
	lanes []machine.Lane
	open  []bool // lane has not finished
	left  int    // lanes open
	sems  []uint64
	ins   []uintptr // by rank: where peers' inputs are (window operations)
	outs  []uintptr
	base  []uintptr      // sources of the current slice
	srcs  []uintptr      // sources of the current block
	word  *atomic.Uint64 // rung when what a lane was last blocked on may have changed
	err   error

	pushed bool // fused form: this rank's input is on its way
	next   int  // fused form: the first rank whose input has not been seen
}

// Begin starts b on a. It does not move anything yet.
func (r *Run) Begin(x *Exec, b *Bound, a Args) error {
	p := b.Prog
	if !b.loops && a.Unit > p.Geom.ChunkBytes {
		return fmt.Errorf("%w: %v serves one chunk; %d bytes given", goccl.ErrInvalid, p.Key, a.Unit)
	}
	r.x, r.b, r.args, r.err = x, b, a, nil
	if b.fused {
		r.pushed, r.next = false, 0
		return nil
	}
	r.lanes, r.open = r.lanes[:0], r.open[:0]
	for ch := range p.Rows {
		for i := range p.Lanes {
			if ln := &p.Lanes[i]; ch%int(ln.Mod) != int(ln.Rem) {
				continue
			}
			r.lanes = append(r.lanes, machine.Lane{})
			r.lanes[len(r.lanes)-1].Reset(p, ch, i, a.Unit)
			r.open = append(r.open, true)
		}
	}
	r.left = len(r.lanes)
	if need := p.Sems * len(p.Rows); len(r.sems) != need {
		r.sems = make([]uint64, need)
	}
	clear(r.sems)
	if b.window {
		r.publish()
	}
	return nil
}

// Step runs every lane until it blocks and reports whether the operation has
// finished and whether anything moved. After an error nothing moves any more.
func (r *Run) Step() (finished, moved bool, err error) {
	if r.b.fused {
		return r.stepFused()
	}
	for i := range r.lanes {
		if !r.open[i] {
			continue
		}
		s, m := machine.Run(r, &r.lanes[i])
		moved = moved || m
		if s == machine.Finished {
			r.open[i] = false
			r.left--
		}
	}
	if r.err != nil {
		return false, moved, r.err
	}
	if r.left > 0 {
		return false, moved, nil
	}
	r.finish()
	return true, true, nil
}

// finish advances what Programs share.
func (r *Run) finish() {
	if r.b.scratch {
		for ch := range r.b.Prog.Rows {
			r.x.epochs[ch]++
		}
	}
	if r.b.window {
		r.x.calls++
	}
}

// Word returns the word on which to sleep until a peer has done what a lane was
// last blocked on; nil when nothing was. It is a hint: sleep with a timeout.
func (r *Run) Word() *atomic.Uint64 { return r.word }

// Posted reports whether all that this rank has to send is on its way: what is
// left waits for peers and keeps none of them waiting.
func (r *Run) Posted() bool {
	if r.b.fused {
		return r.pushed
	}
	if r.b.loops {
		return false
	}
	for i := range r.lanes {
		if r.open[i] && r.lanes[i].PC() <= r.b.lastPost {
			return false
		}
	}
	return true
}

// Signal implements machine.Domain.
func (r *Run) Signal(l *machine.Lane, sig int, d uint64) {
	s := &r.b.Prog.Sigs[int(r.b.Prog.Rows[l.Channel].SigLo)+sig]
	n := r.x.signal(l.Channel, s)
	n[0] += d
	c := &r.x.cfg
	c.Regions[s.Peer].Publish(c.Layout.signal(l.Channel, c.Rank, int(s.Word)), n[0])
	r.x.ring(s.Peer)
}

// Await implements machine.Domain. The first meeting of a window operation also
// learns where the peer's buffers are.
func (r *Run) Await(l *machine.Lane, sig int, d uint64) bool {
	s := &r.b.Prog.Sigs[int(r.b.Prog.Rows[l.Channel].SigLo)+sig]
	n := r.x.signal(l.Channel, s)
	c := &r.x.cfg
	if r.err != nil || c.Regions[c.Rank].Word(c.Layout.signal(l.Channel, int(s.Peer), int(s.Word))).Load() < n[1]+d {
		r.word = c.Bells[c.Rank]
		return false
	}
	if s.Word == 0 && r.b.window && !r.learn(int(s.Peer)) {
		return false
	}
	n[1] += d
	return true
}

// Post implements machine.Domain.
func (r *Run) Post(l *machine.Lane, sem int, d uint64) {
	r.sems[l.Channel*r.b.Prog.Sems+sem] += d
}

// Take implements machine.Domain.
func (r *Run) Take(l *machine.Lane, sem int, d uint64) bool {
	n := &r.sems[l.Channel*r.b.Prog.Sems+sem]
	if *n < d {
		return false
	}
	*n -= d
	return true
}

// publish tells the peers where this rank's buffers are, before the first signal.
func (r *Run) publish() {
	c := &r.x.cfg
	self, parity := c.Regions[c.Rank], r.x.calls
	self.Word(call(parity, 0)).Store(r.args.InAt.word())
	self.Word(call(parity, 1)).Store(r.args.OutAt.word())
	self.Word(call(parity, 2)).Store(uint64(r.args.Sig))
	if len(r.ins) != c.Size {
		r.ins, r.outs = make([]uintptr, c.Size), make([]uintptr, c.Size)
	}
}

// learn reads where a peer's buffers are. The places come from the peer, so they
// are checked against the windows that this rank maps.
func (r *Run) learn(peer int) bool {
	c := &r.x.cfg
	m, parity := c.Regions[peer], r.x.calls
	if sig := uint32(m.Word(call(parity, 2)).Load()); sig != r.args.Sig {
		r.err = &Clash{Peer: peer, Sig: sig}
		return false
	}
	in, ok1 := r.resolve(peer, placeOf(m.Word(call(parity, 0)).Load()))
	out, ok2 := r.resolve(peer, placeOf(m.Word(call(parity, 1)).Load()))
	if !ok1 || !ok2 {
		r.err = fmt.Errorf("%w: rank %d's buffer is not in a window of this communicator", goccl.ErrMismatch, peer)
		return false
	}
	r.ins[peer], r.outs[peer] = in, out
	return true
}

func (r *Run) resolve(peer int, at Place) (uintptr, bool) {
	base, n := r.x.cfg.Windows.Base(at.Window, peer)
	if at.Off < 0 || at.Off > n-r.args.Unit {
		return 0, false
	}
	return base + uintptr(at.Off), true
}

func wake(bell *atomic.Uint64) { spin.Wake(bell) }

var _ machine.Domain = (*Run)(nil)
