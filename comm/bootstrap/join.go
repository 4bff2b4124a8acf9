package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/wire"
)

// Config is one rank's side. Rank and Size are required.
type Config struct {
	Rank    int
	Size    int           // world size; must be that of the root
	Info    []byte        // at most 64 KiB, handed to every rank in Peer.Info
	Job     string        // when set it must be the root's
	Timeout time.Duration // bounds Join, and every wait whose context has no deadline; 0: 5 minutes
	Logger  *slog.Logger  // nil: silent

	// Status answers Query, on a goroutine of the session, at most 1 MiB. It must be
	// safe for concurrent use with everything else; nil answers with nothing.
	Status func() []byte

	// OnMessage is offered every message as it arrives, before a Recv gets it, and
	// takes it by returning true. It is called from one goroutine of the session; it
	// must not block, and may keep data. nil takes none.
	OnMessage func(peer int, tag uint64, data []byte) bool

	// OnEvent hears what happens to ranks, from one goroutine of the session and in
	// the same order on all ranks. It must not block, and not call Close.
	OnEvent func(Event)
}

const defaultTimeout = 5 * time.Minute

// verdictGrace is how long a rank whose deadline has passed waits for the root to
// say who was missing.
const verdictGrace = 2 * time.Second

// Join connects to the root and blocks until all ranks of the world have joined,
// ctx ends or Config.Timeout passes. The error says which step failed at which
// address, why the root refused, or which ranks are missing (Error.Missing); it
// matches goccl.ErrTimeout, ErrMismatch, ErrInvalid, ErrPeerLost, ErrAborted or
// ErrClosed. When one rank fails to join all others fail too, with the same
// reason. A world of one opens no connection.
func Join(ctx context.Context, id UniqueID, cfg Config) (*Session, error) {
	cfg, err := cfg.complete(id)
	if err != nil {
		return nil, cfg.joinError(err)
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	if cfg.Size == 1 {
		return soloSession(cfg), nil
	}
	l, accept, err := connect(ctx, id, cfg, "")
	if err != nil {
		return nil, cfg.joinError(err)
	}
	s := newSession(cfg, l, accept)
	roster, err := s.awaitRoster(ctx)
	if err != nil {
		s.abandon()
		return nil, cfg.joinError(err)
	}
	s.begin(roster)
	cfg.Logger.Info("joined", "rank", cfg.Rank, "size", cfg.Size, "root", l.address())
	return s, nil
}

// FailJoin tells the root that this rank cannot join, instead of joining: the Join
// of every other rank ends with text, this rank and its host. It returns when the
// root has heard it or ctx ends.
func FailJoin(ctx context.Context, id UniqueID, cfg Config, text string) error {
	cfg, err := cfg.complete(id)
	if err != nil {
		return cfg.joinError(err)
	}
	if cfg.Size == 1 {
		return nil
	}
	if text == "" {
		text = "it gave no reason"
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	l, _, err := connect(ctx, id, cfg, text)
	var ref *refusedError
	if errors.As(err, &ref) && ref.Rank != cfg.Rank {
		return nil // the joining has failed already, for a reason that came first
	}
	if err != nil {
		return cfg.joinError(err)
	}
	defer l.close()
	stop := context.AfterFunc(ctx, func() { l.setHard(time.Now()) })
	defer stop()
	for {
		m, err := l.read(wire.MaxDown)
		if err != nil {
			return cfg.joinError(readable(l, err))
		}
		if _, told := m.(wire.Refuse); told {
			return nil
		}
	}
}

// connect finds the root and shakes hands.
func connect(ctx context.Context, id UniqueID, cfg Config, failure string) (*link, wire.Accept, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	hello := wire.Hello{Job: id.job(), Rank: cfg.Rank, Size: cfg.Size, PID: os.Getpid(), Host: host, Failure: failure, Info: cfg.Info}
	if cfg.Job != "" {
		hello.Job = jobHash(cfg.Job)
	}
	var (
		found  *link
		accept wire.Accept
	)
	knocker := func(ctx context.Context, l *link) error {
		a, err := knock(ctx, l, id.secret(), hello)
		if err == nil {
			found, accept = l, a
		}
		return err
	}
	if id.local() {
		c, err := dialLocal(ctx, id)
		if err != nil {
			return nil, accept, err
		}
		l := newLink(c)
		if err := knocker(ctx, l); err != nil {
			l.close()
			return nil, accept, err
		}
		return found, accept, nil
	}
	err = systemFinder().find(ctx, id.endpoints(), knocker)
	return found, accept, err
}

// complete checks the config and fills in defaults.
func (cfg Config) complete(id UniqueID) (Config, error) {
	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.Info = slices.Clone(cfg.Info)
	err := id.check()
	switch {
	case err != nil:
		return cfg, fmt.Errorf("%w: %v", goccl.ErrInvalid, err)
	case cfg.Size < 1:
		return cfg, fmt.Errorf("%w: world size %d", goccl.ErrInvalid, cfg.Size)
	case cfg.Size != id.size():
		return cfg, fmt.Errorf("%w: rank %d says the world size is %d, the root says %d: start all ranks with one world size", goccl.ErrMismatch, cfg.Rank, cfg.Size, id.size())
	case cfg.Rank < 0 || cfg.Rank >= cfg.Size:
		return cfg, fmt.Errorf("%w: rank %d not below world %d: ranks are 0 to %d", goccl.ErrInvalid, cfg.Rank, cfg.Size, cfg.Size-1)
	case len(cfg.Info) > wire.MaxInfo:
		return cfg, fmt.Errorf("%w: info of %d bytes, at most %d", goccl.ErrInvalid, len(cfg.Info), wire.MaxInfo)
	case cfg.Job != "" && jobHash(cfg.Job) != id.job():
		return cfg, fmt.Errorf("%w: the unique id belongs to another job than %q: hand every rank the id of its own job", goccl.ErrMismatch, cfg.Job)
	}
	return cfg, nil
}

// joinError makes the error of Join. What the root decided reads the same on all
// ranks; what happened here names this rank.
func (cfg Config) joinError(err error) error {
	var ref *refusedError
	if errors.As(err, &ref) {
		return verdictError("join", ref.Code, ref.Rank, ref.Missing, ref.Text)
	}
	e := goccl.NewError("join", err)
	e.Rank = cfg.Rank
	var at *attemptError
	var se *searchError
	if errors.As(err, &at) || errors.As(err, &se) {
		e.Peer = 0
		e.PeerAddr = "root"
	}
	if at != nil {
		e.PeerAddr = at.addr
		if at.then != never && !isSentinel(err) {
			e.Err = fmt.Errorf("%w: %w", goccl.ErrPeerLost, err)
		}
	}
	return e
}

func isSentinel(err error) bool {
	return slices.ContainsFunc(sentinels[1:], func(s error) bool { return errors.Is(err, s) })
}
