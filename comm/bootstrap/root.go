package bootstrap

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl"
)

// RootOptions configure a Root. Size is required; zero values are good for the
// rest.
type RootOptions struct {
	Size       int           // world size
	Job        string        // job id: ranks of another job are refused by name
	Listener   net.Listener  // already open TCP listener, owned by the Root from then on; the address is not bound again
	PortRange  PortRange     // where to listen when the address leaves the port open
	Interfaces string        // which interfaces to publish: "eth,ens" prefixes, "=eth0" exact, "^docker" all but these
	Heartbeat  time.Duration // interval; 0: 5 s for ranks on other machines, none for local ones; > 0: for all; < 0: for none
	Linger     time.Duration // how long Serve goes on for the others once rank 0 is gone; 0: 1 minute; < 0: without end
	Logger     *slog.Logger  // nil: silent
}

// Defaults of RootOptions and what follows from them.
const (
	defaultHeartbeat = 5 * time.Second
	defaultLinger    = time.Minute
	lossAfter        = 3 // heartbeats missed in a row before a peer counts as lost
)

// maxSize bounds the world size. A star keeps one connection for each rank.
const maxSize = 1 << 16

// Root is the meeting point of one communicator: it runs the hub that every rank
// stays connected to. It usually lives in the process of rank 0.
type Root struct {
	opt      RootOptions
	id       UniqueID
	listener net.Listener // nil for a world of one
	log      *slog.Logger
	queue    int           // bytes that may wait for one rank
	late     time.Duration // how long to refuse latecomers after a failed join

	started atomic.Bool
	stop    chan struct{} // closed by Close
	ended   chan struct{} // closed when Serve has returned
	once    sync.Once
}

// ListenRoot opens a root for opt.Size ranks at addr: "host:port", ":port" or ""
// for every usable interface and a free port. It does not block beyond name
// resolution, which ctx bounds; call Serve next. A loopback address is published
// only if addr asks for it or the machine has nothing else. Errors match
// goccl.ErrInvalid for bad arguments and otherwise wrap the system's.
func ListenRoot(ctx context.Context, addr string, opt RootOptions) (*Root, error) {
	r, err := newRoot(opt, false)
	if err != nil || opt.Size == 1 {
		return r, err
	}
	fail := func(err error) (*Root, error) {
		_ = r.Close() // the error that matters is the one below
		e := goccl.NewError("listen", err)
		e.Rank = 0
		return nil, e
	}
	var p place
	if r.listener == nil {
		if p, err = resolvePlace(ctx, addr, r.log); err != nil {
			return fail(err)
		}
		if r.listener, err = listen(ctx, p, opt.PortRange, r.log); err != nil {
			return fail(err)
		}
	}
	es, err := published(r.listener, p, opt.Interfaces)
	if err != nil {
		return fail(err)
	}
	for _, e := range es {
		if !r.id.addEndpoint(e) {
			r.log.Info("no room in the unique id for this address; peers will not try it", "addr", e.String())
		}
	}
	r.log.Info("root listens", "id", r.id)
	return r, nil
}

// ListenLocal opens a root for ranks that are goroutines of this process. The
// protocol is that of ListenRoot over in-memory connections: no socket is opened.
func ListenLocal(opt RootOptions) (*Root, error) {
	r, err := newRoot(opt, true)
	if err != nil || opt.Size == 1 {
		return r, err
	}
	l := newLocalListener()
	r.listener = l
	l.publish(r.id)
	return r, nil
}

func newRoot(opt RootOptions, local bool) (*Root, error) {
	if opt.Size < 1 || opt.Size > maxSize {
		return nil, goccl.NewError("listen", fmt.Errorf("%w: world size %d: must be 1 to %d", goccl.ErrInvalid, opt.Size, maxSize))
	}
	if local && opt.Listener != nil {
		return nil, goccl.NewError("listen", fmt.Errorf("%w: ListenLocal takes no Listener", goccl.ErrInvalid))
	}
	if err := opt.PortRange.check(); err != nil {
		return nil, goccl.NewError("listen", fmt.Errorf("%w: %v", goccl.ErrInvalid, err))
	}
	if _, err := parseFilter(opt.Interfaces); err != nil {
		return nil, goccl.NewError("listen", fmt.Errorf("%w: %v", goccl.ErrInvalid, err))
	}
	id, err := newID(opt.Job, opt.Size, local)
	if err != nil {
		return nil, goccl.NewError("listen", err)
	}
	log := opt.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Root{opt: opt, id: id, listener: opt.Listener, log: log, queue: outboxLimit, late: refuseLinger, stop: make(chan struct{}), ended: make(chan struct{})}, nil
}

// ID returns the unique id to hand to every rank.
func (r *Root) ID() UniqueID { return r.id }

// linger returns how long the hub goes on without rank 0; 0 is without end.
func (r *Root) linger() time.Duration {
	if r.opt.Linger == 0 {
		return defaultLinger
	}
	return max(r.opt.Linger, 0)
}

// heartbeat returns the interval for a connection, 0 for none.
func (r *Root) heartbeat(l *link) time.Duration {
	switch {
	case r.opt.Heartbeat > 0:
		return max(r.opt.Heartbeat, time.Millisecond) // the unit on the wire
	case r.opt.Heartbeat < 0 || !l.remote():
		return 0
	}
	return defaultHeartbeat
}

// Close ends the root at once. Ranks still connected see Event{Lost, 0}; call it
// after Serve has returned for a quiet end. It waits for Serve, is idempotent and
// safe from any goroutine.
func (r *Root) Close() error {
	r.once.Do(func() { close(r.stop) })
	if r.started.Load() {
		<-r.ended // bounded: the hub flushes for at most flushTime
		return nil
	}
	if r.listener != nil {
		return r.listener.Close()
	}
	return nil
}
