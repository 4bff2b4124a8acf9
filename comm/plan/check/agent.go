package check

import (
	"fmt"

	"github.com/goccl/goccl/comm/plan"
	"github.com/goccl/goccl/comm/plan/machine"
)

// agent runs one lane of one channel of one rank: the symbolic domain of the
// lane machine.
type agent struct {
	w        *world
	o        *operation
	p        *plan.Program
	rank, ch int
	lane     machine.Lane
	dom      machine.Domain
	done     bool
	thread   int32
	clock    clock
	fifos    []*fifo    // by connector of the channel
	words    []*counter // by signal of the channel
	learnt   []bool     // by peer: where its buffers are
	wait     waiting

	data [][]piece // of the sources of the current slice
	out  []piece
	vals []value
}

func newAgent(w *world, o *operation, r, ch, i, lane int) *agent {
	p := o.progs[r]
	a := &agent{w: w, o: o, p: p, rank: r, ch: ch, thread: int32(w.thread(r, ch, i)), clock: w.users[r].copyTo(nil)}
	a.clock[a.thread]++
	a.lane.Reset(p, ch, lane, o.unit)
	row := &p.Rows[ch]
	for c := row.ConnLo; c < row.ConnLo+row.ConnN; c++ {
		a.fifos = append(a.fifos, w.fifo(ch, &p.Conns[c], r))
	}
	for s := row.SigLo; s < row.SigLo+row.SigN; s++ {
		a.words = append(a.words, w.word(ch, &p.Sigs[s], r))
	}
	if p.Key.Window == plan.WindowBoth {
		a.learnt = make([]bool, w.n)
	}
	a.dom = a
	if w.wrap != nil {
		a.dom = w.wrap(a)
	}
	return a
}

// now is the current event of this lane; tick ends it, after what it did has been
// published.
func (a *agent) now() stamp { return stamp{a.thread, a.clock[a.thread]} }
func (a *agent) tick()      { a.clock[a.thread]++ }

func (a *agent) violation(k Kind, format string, args ...any) *Violation {
	return &Violation{Kind: k, Rank: a.rank, Channel: a.ch, Lane: a.lane.Index, PC: a.lane.PC(), Text: fmt.Sprintf(format, args...)}
}

// fail ends the run. It returns false, what the domain's methods return.
func (a *agent) fail(k Kind, format string, args ...any) bool {
	a.w.bad = a.violation(k, format, args...)
	return false
}

// waiting is what a blocked lane waits for.
type waiting struct {
	what        string // with one or two %d
	peer, which int
}

// block notes what the lane waits for. It returns false, as fail does.
func (a *agent) block(what string, peer, which int) bool {
	a.wait = waiting{what, peer, which}
	return false
}

func (w waiting) String() string {
	if w.what == "" {
		return "its turn"
	}
	return fmt.Sprintf(w.what, w.peer, w.which)
}

// Signal implements machine.Domain.
func (a *agent) Signal(_ *machine.Lane, sig int, d uint64) {
	a.add(a.words[sig], d, "signal")
}

// Await implements machine.Domain.
func (a *agent) Await(_ *machine.Lane, sig int, d uint64) bool {
	s := &a.p.Sigs[int(a.p.Rows[a.ch].SigLo)+sig]
	if !a.take(a.words[sig], d, "signal", waiting{"rank %d to ring word %d", int(s.Peer), int(s.Word)}) {
		return false
	}
	if s.Word == 0 && a.learnt != nil {
		return a.learn(int(s.Peer))
	}
	return true
}

// learn reads where a peer's buffers are.
func (a *agent) learn(peer int) bool {
	at := &a.w.places[peer][a.w.calls[a.rank]%2]
	if op := a.w.ranks[a.rank].op; at.op != op+1 || !a.clock.after(at.wrote) {
		return a.fail(Race, "learns where the buffers of rank %d are before that rank has said so in operation %d", peer, op)
	}
	at.reads.add(a.now())
	a.learnt[peer] = true
	return true
}

// Post implements machine.Domain.
func (a *agent) Post(_ *machine.Lane, sem int, d uint64) {
	a.add(a.semaphore(sem), d, "semaphore")
}

// Take implements machine.Domain.
func (a *agent) Take(_ *machine.Lane, sem int, d uint64) bool {
	return a.take(a.semaphore(sem), d, "semaphore", waiting{"channel %d to post semaphore %d", a.ch, sem})
}

func (a *agent) semaphore(sem int) *counter {
	m := a.w.ranks[a.rank].sems
	k := [2]int{a.ch, sem}
	if m[k] == nil {
		m[k] = &counter{}
	}
	return m[k]
}

func (a *agent) add(n *counter, d uint64, what string) {
	if !a.clock.after(n.adder) {
		a.fail(Race, "adds to a %s at the same time as %s", what, a.w.threadName(n.adder.thread))
		return
	}
	n.add(a.clock, a.now(), d)
	a.tick()
}

func (a *agent) take(n *counter, d uint64, what string, on waiting) bool {
	if !n.ready(d) {
		a.wait = on
		return false
	}
	if !a.clock.after(n.taker) {
		return a.fail(Race, "takes from a %s at the same time as %s", what, a.w.threadName(n.taker.thread))
	}
	n.take(a.clock, a.now(), d)
	a.tick()
	return true
}

var _ machine.Domain = (*agent)(nil)
