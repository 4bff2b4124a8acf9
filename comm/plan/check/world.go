package check

import (
	"fmt"
	"strings"

	"github.com/goccl/goccl/comm/plan"
	"github.com/goccl/goccl/comm/plan/machine"
)

// world is all ranks of a communicator: what outlives operations, and the
// operations that are under way.
type world struct {
	n, width, maxChannels, maxLanes int
	opt                             Options
	banks                           int
	terms                           *terms
	steps                           int

	users   []clock
	fifos   map[fifoKey]*fifo
	words   map[wordKey]*counter
	scratch map[slotKey]*scratchSlot
	epochs  [][]uint64  // by rank and channel
	calls   []int       // window operations so far, by rank
	places  [][2]places // by rank and parity of calls
	ops     []*operation
	ranks   []rank
	bad     *Violation
	// What tests of the checker itself replace: the domain of an agent, and the
	// order in which n ranks or lanes are stepped.
	wrap  func(*agent) machine.Domain
	order func(n int) []int
}

type fifoKey struct {
	channel, from, to int
	index             uint8
	proto             uint8
}

type wordKey struct{ channel, from, to, word int }

type slotKey struct {
	rank, channel int
	bank          uint64
	slot          int
}

// places is what a rank tells its peers at the start of a window operation:
// where its buffers are.
type places struct {
	op    int // plus one
	wrote stamp
	reads readers
}

// rank is where one rank stands.
type rank struct {
	op     int // index of the operation under way, or of the next
	begun  bool
	agents []*agent
	sems   map[[2]int]*counter // of the operation, by channel and number
}

// newWorld returns a world for operations that are run one after another.
func newWorld(opt Options, ops []*operation, t *terms) *world {
	w := &world{opt: opt, banks: plan.Banks, terms: t, ops: ops, n: len(ops[0].progs),
		fifos: map[fifoKey]*fifo{}, words: map[wordKey]*counter{}, scratch: map[slotKey]*scratchSlot{}}
	for _, o := range ops {
		for _, p := range o.progs {
			if p == nil {
				continue
			}
			w.maxChannels = max(w.maxChannels, len(p.Rows))
			for ch := range p.Rows {
				w.maxLanes = max(w.maxLanes, len(lanesOf(p, ch)))
			}
		}
	}
	w.width = w.n * (1 + w.maxChannels*w.maxLanes)
	w.ranks = make([]rank, w.n)
	w.calls = make([]int, w.n)
	w.places = make([][2]places, w.n)
	upTo := make([]int, max(w.n, w.maxChannels*w.maxLanes))
	for i := range upTo {
		upTo[i] = i
	}
	w.order = func(n int) []int { return upTo[:n] }
	for r := range w.n {
		c := make(clock, w.width)
		c[r] = 1
		w.users = append(w.users, c)
		w.epochs = append(w.epochs, make([]uint64, w.maxChannels))
	}
	return w
}

// lanesOf lists the lanes that run in channel ch.
func lanesOf(p *plan.Program, ch int) []int {
	var ls []int
	for i := range p.Lanes {
		if ch%int(p.Lanes[i].Mod) == int(p.Lanes[i].Rem) {
			ls = append(ls, i)
		}
	}
	return ls
}

// thread returns the clock index of the i-th lane of a channel.
func (w *world) thread(r, ch, i int) int {
	return w.n + (r*w.maxChannels+ch)*w.maxLanes + i
}

func (w *world) fifo(ch int, c *plan.Conn, self int) *fifo {
	k := fifoKey{channel: ch, from: self, to: int(c.Peer), index: c.Index, proto: uint8(c.Proto)}
	if !c.Send {
		k.from, k.to = k.to, k.from
	}
	f := w.fifos[k]
	if f == nil {
		f = newFIFO(k.from, k.to, w.opt.Slots)
		w.fifos[k] = f
	}
	return f
}

func (w *world) word(ch int, s *plan.Sig, self int) *counter {
	k := wordKey{channel: ch, from: self, to: int(s.Peer), word: int(s.Word)}
	if !s.Out {
		k.from, k.to = k.to, k.from
	}
	c := w.words[k]
	if c == nil {
		c = &counter{}
		w.words[k] = c
	}
	return c
}

// run steps all ranks until everything has ended, and reports the first
// violation.
func (w *world) run() *Violation {
	for {
		moved, left := false, false
		for _, r := range w.order(w.n) {
			if w.ranks[r].op == len(w.ops) {
				continue
			}
			left = true
			if w.stepRank(r) {
				moved = true
			}
			if w.bad != nil {
				return w.bad
			}
		}
		switch {
		case !left:
			return nil // nothing is left in a FIFO: both ends advance equally
		case !moved:
			return w.deadlock()
		}
	}
}

// stepRank steps the lanes of a rank until each is blocked, and begins and ends
// its operations.
func (w *world) stepRank(r int) (moved bool) {
	k := &w.ranks[r]
	if !k.begun {
		w.begin(r)
		moved = true
	}
	open := false
	for _, i := range w.order(len(k.agents)) {
		a := k.agents[i]
		for !a.done && w.bad == nil {
			if w.steps++; w.steps > w.opt.MaxSteps {
				w.bad = atRank(Runaway, r, "more than %d steps", w.opt.MaxSteps)
				return true
			}
			s := machine.Step(a.dom, &a.lane)
			if s == machine.Blocked {
				break
			}
			moved = true
			a.done = s == machine.Finished
		}
		open = open || !a.done
	}
	if !open && w.bad == nil {
		w.end(r)
		moved = true
	}
	return moved
}

// begin starts the next operation of a rank.
func (w *world) begin(r int) {
	k := &w.ranks[r]
	o := w.ops[k.op]
	k.begun, k.agents, k.sems = true, k.agents[:0], map[[2]int]*counter{}
	u := w.users[r]
	u[r]++
	now := stamp{int32(r), u[r]}
	o.started[r] = now
	p := o.progs[r]
	if p == nil {
		return
	}
	o.makeBuffers(r, now, w.terms)
	if p.Key.Window == plan.WindowBoth {
		at := &w.places[r][w.calls[r]%2]
		if s, bad := at.reads.unordered(u); bad {
			w.bad = atRank(Race, r, "tells where its buffers are in operation %d before %s has read where they were", k.op, w.threadName(s.thread))
			return
		}
		*at = places{op: k.op + 1, wrote: now}
	}
	for ch := range p.Rows {
		for i, lane := range lanesOf(p, ch) {
			k.agents = append(k.agents, newAgent(w, o, r, ch, i, lane))
		}
	}
}

// end finishes the operation of a rank: its user may now read and write its
// buffers, so every access to them must be known to be over.
func (w *world) end(r int) {
	k := &w.ranks[r]
	o := w.ops[k.op]
	u := w.users[r]
	for _, a := range k.agents {
		u.join(a.clock)
	}
	u[r]++
	now := stamp{int32(r), u[r]}
	p := o.progs[r]
	if p != nil {
		for _, v := range []view{o.in[r], o.out[r]} {
			if v.s == nil {
				continue
			}
			if w.bad = v.s.each(v.off, v.n, func(g *seg) *Violation { return w.returned(r, k.op, g, now) }); w.bad != nil {
				return
			}
		}
		if p.Key.Window == plan.WindowBoth {
			w.calls[r]++
		}
		if p.UsesScratch() {
			for ch := range p.Rows {
				w.epochs[r][ch]++
			}
		}
	}
	o.ended(r, u)
	k.op++
	k.begun = false
	k.agents = k.agents[:0]
}

// returned checks that a range of a buffer can be given back to the user.
func (w *world) returned(r, op int, g *seg, now stamp) *Violation {
	u := w.users[r]
	s, bad := g.reads.unordered(u)
	what := "read"
	if !bad && !u.after(g.wrote) {
		s, bad, what = g.wrote, true, "written"
	}
	if bad {
		return atRank(Race, r, "operation %d ends while bytes %d to %d of a buffer can still be %s by %s", op, g.off, g.end, what, w.threadName(s.thread))
	}
	g.wrote, g.reads = now, readers{}
	return nil
}

// threadName says which thread a clock index is.
func (w *world) threadName(t int32) string {
	if int(t) < w.n {
		return fmt.Sprintf("the user of rank %d", t)
	}
	i := int(t) - w.n
	return fmt.Sprintf("rank %d channel %d lane %d", i/w.maxLanes/w.maxChannels, i/w.maxLanes%w.maxChannels, i%w.maxLanes)
}

// deadlock names what every lane waits for.
func (w *world) deadlock() *Violation {
	var b strings.Builder
	var at *agent
	lines := 0
	for r := range w.ranks {
		for _, a := range w.ranks[r].agents {
			if a.done {
				continue
			}
			if at == nil {
				at = a
			}
			if lines++; lines <= 16 {
				fmt.Fprintf(&b, "\n\trank %d channel %d lane %d at %d, iteration %d: waits for %s", r, a.ch, a.lane.Index, a.lane.PC(), a.lane.Iteration(), a.wait)
			}
		}
	}
	if lines > 16 {
		fmt.Fprintf(&b, "\n\tand %d more lanes", lines-16)
	}
	return at.violation(Deadlock, "no lane can go on:%s", b.String())
}
