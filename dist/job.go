package dist

import (
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm"
	"github.com/goccl/goccl/comm/bootstrap"
	"github.com/goccl/goccl/dist/store"
	processgroup "github.com/goccl/goccl/process_group"
	"github.com/goccl/goccl/process_group/backend"
)

// Group is a set of ranks; see package processgroup.
type Group = processgroup.Group

// Work is an operation under way; see package processgroup.
type Work = processgroup.Work

// Job is one rank's membership in a job. Its methods are safe for concurrent
// use; those that make groups must be called in one order on all ranks.
type Job struct {
	cfg   Config
	self  string // "host node1, pid 81"
	local bool   // all ranks are goroutines of this process
	store store.Store
	// open opens the rendezvous of a group whose first rank this one is.
	open  func(ctx context.Context, opt bootstrap.RootOptions) (*comm.Root, error)
	end   func(ctx context.Context) error // of the store; may wait for the other ranks
	world *Group

	mu      sync.Mutex
	over    bool           // Close has begun
	counts  map[string]int // groups made so far, by the way and name they were made
	origins map[*Group]origin
	groups  []*Group // in the order of making
	roots   []*comm.Root
	serves  sync.WaitGroup // the roots' goroutines

	watch   watch
	closing sync.Once
	closed  error
}

// origin is how a group was made.
type origin struct {
	key    string // unique among the job's groups, equal on their ranks
	engine backend.Engine
}

// Init joins the job and returns when all ranks have. It is bounded by ctx and
// Config.Timeout; the error names the ranks that are missing.
func Init(ctx context.Context, cfg Config) (*Job, error) {
	if err := cfg.fill(); err != nil {
		return nil, fmt.Errorf("goccl: init: %w", err)
	}
	for _, w := range cfg.warnings {
		cfg.Logger.Warn(w.Text)
	}
	crowd(cfg.Identity.LocalSize, cfg.Logger)
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	j := newJob(cfg)
	j.open = j.openRoot
	if err := j.reachStore(ctx); err != nil {
		return nil, err
	}
	return j.enter(ctx)
}

func newJob(cfg Config) *Job {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return &Job{cfg: cfg, self: fmt.Sprintf("host %s, pid %d", host, os.Getpid()), end: func(context.Context) error { return nil },
		counts: map[string]int{}, origins: map[*Group]origin{}}
}

// enter makes the world of a job that has its store.
func (j *Job) enter(ctx context.Context) (*Job, error) {
	err := j.signIn(ctx)
	if err == nil {
		all := make([]int, j.Size())
		for r := range all {
			all[r] = r
		}
		j.world, err = j.form(ctx, "world", "world", all, nil)
	}
	if err != nil {
		j.abandon()
		return nil, err
	}
	j.watch.start(j)
	return j, nil
}

// World returns the group of all ranks.
func (j *Job) World() *Group { return j.world }

// Rank returns this rank in the job.
func (j *Job) Rank() int { return j.cfg.Identity.Rank }

// Size returns the number of ranks of the job.
func (j *Job) Size() int { return j.cfg.Identity.Size }

// Identity returns who this rank is.
func (j *Job) Identity() Identity { return *j.cfg.Identity }

// signIn claims this rank in the store, so that two processes with one rank are
// told apart and named.
func (j *Job) signIn(ctx context.Context) error {
	key := fmt.Sprintf("who/%d", j.Rank())
	who, mine, err := j.store.CompareAndSwap(ctx, key, nil, []byte(j.self))
	if err != nil {
		return fmt.Errorf("goccl: rank %d: init: %w", j.Rank(), err)
	}
	if !mine {
		return j.taken(string(who))
	}
	return nil
}

// taken is the error of the second process with a rank.
func (j *Job) taken(who string) error {
	e := goccl.NewError("init", goccl.ErrMismatch)
	e.Rank, e.Peer = j.Rank(), j.Rank()
	e.Sentence = fmt.Sprintf("goccl: rank %d of the job is taken by %s; this process (%s) was given the same rank by %s: give every process its own RANK",
		j.Rank(), who, j.self, j.cfg.Identity.source())
	return e
}
