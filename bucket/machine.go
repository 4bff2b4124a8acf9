package bucket

import (
	"fmt"
	"slices"

	"github.com/goccl/goccl"
)

// machine is the logic of a step as a pure state machine: events come in by
// method calls, what is to be done goes out as actions. It holds no memory of
// tensors, starts nothing, waits for nothing and knows no time; its caller
// serialises the events and performs the actions in order.
//
//	event          actions
//	gradReady(i)   launch b ...      head buckets that became full
//	finish()       zero/fill i, launch b ... | fail
//	reduced(b)     copyBack b, then done (and rebuild) after the last one | fail
//	begin()        none: the next step is open
//	relayout(...)  none: other buckets from this step on
//
// Invariants: launched <= number of buckets, and buckets [0, launched) are those
// launched; reduced <= launched; a bucket is launched when pending is 0 for it
// and all before it are launched.
type machine struct {
	names    []string
	bucketOf []int32 // per parameter; -1: in no bucket
	members  [][]int // per bucket
	pending  []int32 // per bucket: gradients that are not ready
	isDone   []bool  // per bucket: reduced
	ready    []bool  // per parameter, in this step
	touched  []bool  // per parameter: ready inside NoSync since the last reduction

	launched int
	reducedN int
	anyReady bool
	finished bool
	err      error // first failure; final

	mode  mode
	order []int // order in which gradients became ready, while recording
	acts  []action
}

// newMachine returns a machine whose first step is open.
func newMachine(names []string, buckets [][]int, m mode) *machine {
	n := len(names)
	x := &machine{names: names, mode: m, bucketOf: make([]int32, n), ready: make([]bool, n), touched: make([]bool, n)}
	x.order = make([]int, 0, n)
	x.relayout(buckets)
	return x
}

// relayout gives the machine other buckets. Only between steps.
func (m *machine) relayout(buckets [][]int) {
	m.members = buckets
	for i := range m.bucketOf {
		m.bucketOf[i] = -1
	}
	for b, members := range buckets {
		for _, i := range members {
			m.bucketOf[i] = int32(b)
		}
	}
	m.pending = make([]int32, len(buckets))
	m.isDone = make([]bool, len(buckets))
	m.acts = make([]action, 0, len(m.names)+2*len(buckets)+2)
	m.begin()
}

// begin opens the next step.
func (m *machine) begin() {
	for b, members := range m.members {
		m.pending[b] = int32(len(members))
		m.isDone[b] = false
	}
	clear(m.ready)
	m.launched, m.reducedN = 0, 0
	m.anyReady, m.finished = false, false
	m.order = m.order[:0]
}

// idle reports whether no step is under way: nothing was announced since begin.
func (m *machine) idle() bool { return !m.anyReady && !m.finished }

// gradReady takes note that the gradient of parameter i is complete. The actions
// are valid until the next event.
func (m *machine) gradReady(i int) []action {
	m.acts = m.acts[:0]
	switch {
	case m.err != nil:
		return m.fail(m.err)
	case i < 0 || i >= len(m.names):
		return m.fail(fmt.Errorf("%w: there is no parameter %d: the reducer has %d", goccl.ErrInvalid, i, len(m.names)))
	case m.bucketOf[i] < 0:
		return m.fail(fmt.Errorf("%w: parameter %d (%q) is frozen and has no gradient", goccl.ErrInvalid, i, m.names[i]))
	case m.mode.noSync:
		m.touched[i] = true
		return m.acts
	case m.finished:
		return m.fail(fmt.Errorf("%w: the gradient of %q became ready after Finish had begun", goccl.ErrInvalid, m.names[i]))
	case m.ready[i]:
		return m.twice(i)
	}
	m.anyReady = true
	m.ready[i] = true
	if m.mode.record {
		m.order = append(m.order, i)
	}
	m.pending[m.bucketOf[i]]--
	if m.mode.hold {
		return m.acts
	}
	return m.launch()
}

// twice fails the step: the gradient of i was announced before in this step.
func (m *machine) twice(i int) []action {
	m.acts = m.acts[:0]
	return m.fail(fmt.Errorf("%w: the gradient of %q became ready twice in one step; a parameter used twice is announced once, after its last use, and Finish stands between steps",
		goccl.ErrInvalid, m.names[i]))
}

// launch appends the buckets that can go now: strictly by number, so that all
// ranks issue them in one order whatever order gradients arrive in.
func (m *machine) launch() []action {
	for m.launched < len(m.members) && m.pending[m.launched] == 0 {
		m.acts = append(m.acts, action{actLaunch, m.launched})
		m.launched++
	}
	return m.acts
}

// finish says that the backward pass is over. Gradients that are missing are an
// error, or with findUnused are filled in.
func (m *machine) finish() []action {
	m.acts = m.acts[:0]
	switch {
	case m.err != nil:
		return m.fail(m.err)
	case m.finished || m.mode.noSync:
		return m.acts
	}
	if !m.mode.findUnused {
		if missing := m.missing(); len(missing) > 0 {
			return m.fail(m.missingError(missing))
		}
	}
	m.finished = true
	for i, b := range m.bucketOf {
		if b < 0 || m.ready[i] {
			continue
		}
		kind := actZero
		if m.touched[i] {
			kind = actFill
		}
		m.acts = append(m.acts, action{kind, i})
		m.ready[i] = true
		m.pending[b]--
		if m.mode.record {
			m.order = append(m.order, i)
		}
	}
	m.launch()
	if len(m.members) == 0 {
		return m.done()
	}
	return m.acts
}

// reduced says that the operation of bucket b has ended.
func (m *machine) reduced(b int, err error) []action {
	m.acts = m.acts[:0]
	switch {
	case m.err != nil:
		return m.fail(m.err)
	case err != nil:
		return m.fail(err)
	case b < 0 || b >= m.launched || m.isDone[b]:
		return m.fail(fmt.Errorf("%w: bucket %d ended without being in flight", goccl.ErrInvalid, b))
	}
	m.isDone[b] = true
	m.reducedN++
	m.acts = append(m.acts, action{actCopyBack, b})
	if m.reducedN == len(m.members) {
		return m.done()
	}
	return m.acts
}

func (m *machine) done() []action {
	clear(m.touched)
	m.acts = append(m.acts, action{actDone, -1})
	if m.mode.record {
		m.mode.record = false
		m.acts = append(m.acts, action{actRebuild, -1})
	}
	return m.acts
}

// setNoSync switches local accumulation on or off; in the middle of a step it is
// refused, since some of its gradients have been announced already.
func (m *machine) setNoSync(on bool) error {
	if !m.idle() {
		return fmt.Errorf("%w: NoSync inside a step: %d gradients were announced since the last Finish", goccl.ErrInvalid, m.announced())
	}
	m.mode.noSync = on
	return nil
}

func (m *machine) announced() int {
	n := 0
	for _, r := range m.ready {
		if r {
			n++
		}
	}
	return n
}

// missing lists the parameters whose gradient is not ready.
func (m *machine) missing() []int {
	var out []int
	for i, b := range m.bucketOf {
		if b >= 0 && !m.ready[i] {
			out = append(out, i)
		}
	}
	return out
}

func (m *machine) missingError(missing []int) error {
	total := 0
	for _, b := range m.bucketOf {
		if b >= 0 {
			total++
		}
	}
	return fmt.Errorf("%w: %d of %d gradients never became ready: %s", goccl.ErrInvalid, len(missing), total, nameList(m.names, missing))
}

// fail ends the machine: the first error stays.
func (m *machine) fail(err error) []action {
	if m.err == nil {
		m.err = err
	}
	m.acts = append(m.acts[:0], action{actFail, -1})
	return m.acts
}

// readyOrder returns a copy of the recorded order.
func (m *machine) readyOrder() []int { return slices.Clone(m.order) }
