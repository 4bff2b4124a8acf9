package nccl

import (
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/process_group/backend/nccl/libnccl"
)

// port is a communicator of NCCL and the device under it, as far as the engine
// needs them. launch, seal, abort and close are called by the holder of the
// engine's turn alone, the others by anyone.
type port interface {
	// launch hands j to NCCL, after the streams that it is ordered after. With
	// InProgress NCCL is still at it; with Success j is on its stream and sealed.
	launch(j *job) (libnccl.Result, error)
	// seal marks the place on the stream behind j.
	seal(j *job) error
	// mayBlock reports whether launch could wait for other ranks.
	mayBlock(j *job) bool
	// ended reports whether what is in front of the seal of j is done.
	ended(j *job) (bool, error)
	// state is what NCCL does in the background, or how it failed there.
	state() (libnccl.Result, error)
	// abort ends what is under way and frees the communicator. It may block.
	abort() error
	// close frees the communicator once all is done. It may block for as long as
	// other ranks do not close theirs.
	close() error
}

// Times of the engine.
const (
	inlineLaunch = 100 * time.Microsecond // how long a Start waits for NCCL's own thread
	lookEvery    = 10 * time.Millisecond  // between two looks at the background state
	abortGrace   = 5 * time.Second        // for a call inside NCCL to come back before an abort
	abortLimit   = 10 * time.Second       // for the abort itself
)

// member is who this rank is, for messages.
type member struct {
	group      string
	rank, size int
}

// explain makes the error of j of err.
func (m member) explain(j *job, err error) error {
	e := goccl.NewError(j.op.Name(), err)
	e.Group, e.Rank, e.Seq, e.Transport = m.group, m.rank, j.op.Seq, "nccl"
	return e
}

// engine launches jobs in the order of their start. It owns the queue and the turn:
// the right to call NCCL, which whoever starts a job takes when it is free, and
// which passes to the runner when NCCL makes it wait.
type engine struct {
	port port
	who  member
	log  *slog.Logger

	mu    sync.Mutex // guards the next three; held for a few instructions
	queue []*job     // started and not taken, oldest first
	first int        // where the queue begins
	held  bool       // somebody has the turn

	current *job  // being launched; the turn's holder's, as broken is
	broken  error // a launch failed, so that what follows would meet other calls of the peers

	kick    chan struct{} // hands the turn to the runner
	stop    chan struct{}
	once    sync.Once // closes stop
	stopped chan struct{}

	cause  atomic.Pointer[failure]
	over   chan struct{} // closed when an abort has been carried out or given up
	stuck  bool          // NCCL did not come back from a call or its abort; set before over is closed
	grace  time.Duration // abortGrace; tests have less patience
	looked atomic.Int64  // when the background state was last looked at
	base   time.Time
}

type failure struct{ err error }

func newEngine(p port, who member, log *slog.Logger) *engine {
	e := &engine{port: p, who: who, log: log, kick: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{}),
		over: make(chan struct{}), grace: abortGrace, base: time.Now()}
	go e.run()
	return e
}

// start queues j and launches it when nothing is before it. It waits for no other
// rank, unless the communicator blocks and connects where that could not be
// foreseen.
func (e *engine) start(j *job) {
	if f := e.cause.Load(); f != nil {
		j.end(f.err)
		return
	}
	e.mu.Lock()
	e.queue = append(e.queue, j)
	mine := !e.held
	e.held = true
	e.mu.Unlock()
	if mine {
		e.drive(true)
	}
}

// next takes the oldest job, or gives the turn up when there is none.
func (e *engine) next() *job {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.first == len(e.queue) {
		e.queue, e.first = e.queue[:0], 0
		e.held = false
		return nil
	}
	j := e.queue[e.first]
	e.queue[e.first] = nil
	e.first++
	return j
}

// drive launches what is queued. The caller has the turn, and has it no more when
// drive returns: there is nothing left to launch, or the runner goes on. inline
// says that a user's call waits.
func (e *engine) drive(inline bool) {
	for {
		if e.current == nil {
			j := e.next()
			if j == nil {
				return // the turn is gone: current is somebody else's
			}
			e.current = j
		}
		if !e.advance(e.current, inline) {
			e.kick <- struct{}{} // never full: only the turn's holder sends
			return
		}
		e.current = nil
	}
}

// advance launches j or goes on with it; false when that would make a user wait.
func (e *engine) advance(j *job, inline bool) bool {
	if f := e.cause.Load(); f != nil {
		e.forsake(j, f.err)
		return true
	}
	if e.broken != nil {
		j.end(e.broken)
		return true
	}
	r := libnccl.InProgress
	var err error
	if j.phase.Load() == queued {
		if inline && e.port.mayBlock(j) {
			return false
		}
		j.advance(queued, launching)
		r, err = e.port.launch(j)
	}
	if err == nil && r == libnccl.InProgress {
		if r, err = e.settle(patienceOf(inline)); err == nil && r == libnccl.InProgress {
			return e.cause.Load() != nil // then those who ask end it when the abort is over
		}
		if err == nil {
			err = e.port.seal(j)
		}
	}
	if err != nil {
		e.broken = e.who.explain(j, err)
		j.end(e.broken)
		return true
	}
	j.advance(launching, running)
	return true
}

// forsake ends a job that an abort overtook. One that NCCL has been given is ended
// by those who ask, when the abort is over.
func (e *engine) forsake(j *job, cause error) {
	if j.phase.Load() == queued {
		j.end(cause)
	}
}

// forever is no limit of a settle.
const forever = time.Duration(math.MaxInt64)

// patienceOf is how long a launch is waited for: a moment when a user's call waits.
func patienceOf(inline bool) time.Duration {
	if inline {
		return inlineLaunch
	}
	return forever
}

// settle waits until NCCL's own thread is done with what it was given, fails, or
// all is aborted. It returns InProgress when that takes longer than limit, and after
// an abort.
func (e *engine) settle(limit time.Duration) (libnccl.Result, error) {
	for began := time.Now(); ; {
		r, err := e.port.state()
		if r != libnccl.InProgress || err != nil {
			return r, err
		}
		spent := time.Since(began)
		switch {
		case e.cause.Load() != nil || spent >= limit:
			return r, nil
		case spent < inlineLaunch:
			runtime.Gosched()
			continue
		}
		select {
		case <-e.stop:
			return r, nil
		case <-time.After(min(spent/8, 10*time.Millisecond)):
		}
	}
}

// run is the runner: it has the turn while NCCL makes it wait.
func (e *engine) run() {
	defer close(e.stopped)
	for {
		select {
		case <-e.kick:
			e.drive(false)
		case <-e.stop:
			return
		}
	}
}

// test reports whether j has ended, and how. It never blocks.
func (e *engine) test(j *job) (bool, error) {
	f := e.cause.Load()
	switch j.phase.Load() {
	case ended:
		return true, j.end(nil)
	case running:
		done, err := e.port.ended(j)
		switch {
		case f != nil && (done || err != nil || e.isOver()):
			// After an abort its output is worth nothing, however it ended.
			return true, j.end(f.err)
		case f != nil:
			return false, nil
		case err != nil:
			return true, j.end(e.who.explain(j, err))
		case done:
			return true, j.end(nil)
		}
		if err := e.look(); err != nil {
			return true, j.end(e.who.explain(j, err))
		}
		return false, nil
	}
	if f != nil && e.isOver() {
		return true, j.end(f.err)
	}
	return false, nil
}

// look asks NCCL from time to time whether something broke in the background.
func (e *engine) look() error {
	now, last := int64(time.Since(e.base)), e.looked.Load()
	if now-last < int64(lookEvery) || !e.looked.CompareAndSwap(last, now) {
		return nil
	}
	_, err := e.port.state()
	return err
}

func (e *engine) isOver() bool {
	select {
	case <-e.over:
		return true
	default:
		return false
	}
}

// launched reports whether j is on its stream, or has ended.
func (j *job) launched() bool { return j.phase.Load() >= running }

// abort ends all jobs, and those started later, with cause. It does not block.
func (e *engine) abort(cause error) {
	if e.cause.CompareAndSwap(nil, &failure{cause}) {
		go e.carryOut()
	}
}

// carryOut aborts the communicator once nobody is in a call on it. A call that does
// not come back, since it waits for a rank that never comes, keeps the communicator:
// freeing it under that call would crash the process.
func (e *engine) carryOut() {
	defer close(e.over)
	if !e.seize(e.grace) {
		e.stuck = true
		e.log.Error("NCCL does not come back from a call; its communicator and GPU memory stay until the process ends")
		return
	}
	e.mu.Lock()
	rest := e.queue[e.first:]
	e.queue, e.first = nil, 0
	e.mu.Unlock()
	cause := e.cause.Load().err
	for _, j := range rest {
		j.end(cause)
	}
	switch err, over := within(abortLimit, e.port.abort); {
	case !over:
		e.stuck = true
		e.log.Error("NCCL's abort does not end", "after", abortLimit)
	case err != nil:
		e.log.Warn("NCCL's abort", "err", err)
	}
}

// within runs fn, a call of NCCL that may hang, and returns its error; false when
// it is not over within limit. It is then left to itself.
func within(limit time.Duration, fn func() error) (error, bool) {
	done := make(chan error, 1)
	go func() { done <- fn() }()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-done:
		return err, true
	case <-timer.C:
		return nil, false
	}
}

// seize takes the turn for good, within limit.
func (e *engine) seize(limit time.Duration) bool {
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		e.mu.Lock()
		free := !e.held
		e.held = true
		e.mu.Unlock()
		if free || time.Since(began) > limit {
			return free
		}
	}
}

// close ends the engine, whose jobs have ended, and frees the communicator within
// limit.
func (e *engine) close(limit time.Duration) error {
	defer e.dismiss()
	if !e.cause.CompareAndSwap(nil, &failure{goccl.ErrClosed}) { // no abort from now on
		<-e.over // bounded by abortGrace and abortLimit
		if e.stuck {
			return e.late("NCCL does not come back from a call; its communicator and GPU memory stay until the process ends", e.grace)
		}
		return nil
	}
	if !e.seize(limit) {
		return e.late("NCCL does not come back from a call", limit)
	}
	err, over := within(limit, e.port.close)
	if !over {
		return e.late("NCCL does not free its communicator; all ranks close theirs at the same time", limit)
	}
	return err
}

func (e *engine) late(what string, limit time.Duration) error {
	err := goccl.NewError("close", fmt.Errorf("%w after %v", goccl.ErrTimeout, limit))
	err.Group, err.Rank, err.Transport, err.Hint = e.who.group, e.who.rank, "nccl", what
	return err
}

// dismiss ends the runner. One that is inside NCCL ends when NCCL lets it.
func (e *engine) dismiss() {
	e.once.Do(func() { close(e.stop) })
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-e.stopped:
	case <-timer.C:
	}
}
