package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccl/goccl"
)

// Times of the search for the root. Every address gets a short time at first, so
// that one which leads nowhere costs little, and more in later rounds.
const (
	firstDial  = time.Second
	longDial   = 8 * time.Second
	firstPause = 25 * time.Millisecond
	longPause  = time.Second
)

// finder tries the root's addresses until one of them leads to the root. Its
// functions are replaced in tests.
type finder struct {
	dial   func(ctx context.Context, address string) (net.Conn, error)
	lookup func(ctx context.Context, name string) ([]netip.Addr, error)
	nics   func() ([]nic, error)
}

func systemFinder() finder {
	d := net.Dialer{KeepAliveConfig: keepAlive}
	return finder{
		dial: func(ctx context.Context, a string) (net.Conn, error) { return d.DialContext(ctx, "tcp", a) },
		lookup: func(ctx context.Context, n string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", n)
		},
		nics: systemNICs,
	}
}

// verdictOf says what a failed attempt means for the search.
type verdictOf uint8

const (
	again   verdictOf = iota // may work later
	another                  // not this address
	never                    // the root has spoken
)

// attemptError is a failed step at one address.
type attemptError struct {
	addr string
	step string // "resolve", "connect", "read banner", ...
	then verdictOf
	err  error
}

func (e *attemptError) Error() string { return fmt.Sprintf("%s: %s: %v", e.addr, e.step, e.err) }
func (e *attemptError) Unwrap() error { return e.err }

// find calls knock on a connection to each endpoint in order, round after round,
// until a knock succeeds, the root refuses, no address can ever work, or ctx ends.
func (f finder) find(ctx context.Context, es []endpoint, knock func(context.Context, *link) error) error {
	if len(es) == 0 {
		return fmt.Errorf("%w: the unique id has no address", goccl.ErrInvalid)
	}
	pause, patience := firstPause, firstDial
	for {
		nics, _ := f.nics() // only scopes and the family hint depend on them
		var failures []*attemptError
		hope := false
		for _, e := range es {
			fs := f.tryEndpoint(ctx, e, nics, patience, knock)
			if fs == nil {
				return nil
			}
			if i := slices.IndexFunc(fs, func(a *attemptError) bool { return a.then == never }); i >= 0 {
				return fs[i]
			}
			hope = hope || slices.ContainsFunc(fs, func(a *attemptError) bool { return a.then == again })
			failures = append(failures, fs...)
			if ctx.Err() != nil {
				break
			}
		}
		if !hope {
			return noWay(failures, nics, "")
		}
		select {
		case <-ctx.Done():
			return noWay(failures, nics, ended(ctx))
		case <-time.After(pause):
		}
		pause, patience = min(pause*2, longPause), min(patience*2, longDial)
	}
}

// tryEndpoint returns nil when a knock succeeded, else what failed; at least one.
func (f finder) tryEndpoint(ctx context.Context, e endpoint, nics []nic, patience time.Duration, knock func(context.Context, *link) error) []*attemptError {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	addrs := []netip.Addr{e.addr}
	if e.name != "" {
		lctx, stop := context.WithTimeout(ctx, patience)
		found, err := f.lookup(lctx, e.name)
		stop()
		if err != nil {
			// Names of services may appear after the first processes have started.
			return []*attemptError{{addr: e.String(), step: "resolve", then: again, err: err}}
		}
		addrs = found
	}
	var fs []*attemptError
	for _, a := range addrs {
		targets := scoped(a.Unmap(), nics)
		if len(targets) == 0 {
			fs = append(fs, &attemptError{addr: e.String(), step: "connect", then: again, // one may be coming up
				err: errors.New("a link-local address needs an interface with one of its own, and this host has none")})
		}
		for _, t := range targets {
			err := f.tryAddr(ctx, net.JoinHostPort(t.String(), strconv.Itoa(int(e.port))), patience, knock)
			if err == nil {
				return nil
			}
			fs = append(fs, err)
			if err.then == never || ctx.Err() != nil {
				return fs
			}
		}
	}
	if len(fs) == 0 {
		fs = append(fs, &attemptError{addr: e.String(), step: "resolve", then: again, err: errors.New("the name has no address")})
	}
	return fs
}

func (f finder) tryAddr(ctx context.Context, addr string, patience time.Duration, knock func(context.Context, *link) error) *attemptError {
	dctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := f.dial(dctx, addr)
	if err != nil {
		return &attemptError{addr: addr, step: "connect", then: dialVerdict(err), err: withFileLimit(err)}
	}
	l := newLink(c)
	err = knock(ctx, l)
	if err == nil {
		return nil
	}
	l.close()
	var at *attemptError
	if !errors.As(err, &at) {
		at = &attemptError{step: "handshake", then: another, err: err}
	}
	at.addr = addr
	return at
}

// dialVerdict sorts the errors of a connect: those of a network or peer that is
// still coming up may pass.
func dialVerdict(err error) verdictOf {
	var ne net.Error
	switch {
	case isTooManyFiles(err):
		return never
	case errors.As(err, &ne) && ne.Timeout(), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return again
	case slices.ContainsFunc(transientErrnos, func(e error) bool { return errors.Is(err, e) }):
		return again
	}
	return another
}

// noWay sums up a search that failed: each address with what happened there last.
func noWay(fs []*attemptError, nics []nic, why string) error {
	kind := goccl.ErrPeerLost
	if why != "" {
		kind = goccl.ErrTimeout
		why = ": " + why
	}
	var tried []string
	both := []error{kind}
	for _, f := range fs {
		tried = append(tried, f.Error())
		both = append(both, f.err)
	}
	return &searchError{text: fmt.Sprintf("cannot reach the root%s: tried %s; this host has %s", why, strings.Join(tried, "; "), families(nics)), causes: both}
}

// searchError keeps the system's errors reachable behind one line of text.
type searchError struct {
	text   string
	causes []error
}

func (e *searchError) Error() string   { return e.text }
func (e *searchError) Unwrap() []error { return e.causes }

// ended says in words why ctx ended.
func ended(ctx context.Context) string {
	err := context.Cause(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return "timed out"
	}
	return err.Error()
}
