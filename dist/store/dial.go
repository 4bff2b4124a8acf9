package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"time"

	"github.com/goccl/goccl"
)

// DialConfig is the configuration of a client of a TCP store. The zero value
// names no job.
type DialConfig struct {
	// Job is the id of the job, as in ServerConfig.
	Job string

	// Name says who this is in the server's messages, for example "rank 3"; at
	// most 256 bytes.
	Name string

	// Timeout bounds DialTCP if its context has no deadline, and each call
	// but Get likewise; 5 minutes if 0.
	Timeout time.Duration

	// Dial makes a connection; nil: net.Dialer.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	// Logger is told when the server cannot be reached yet; nil: no one.
	Logger *slog.Logger
}

// attemptTime bounds one connection attempt and one handshake, so that a packet
// that is lost on a network coming up costs one attempt and not the job.
const attemptTime = 10 * time.Second

// DialTCP connects to the server at addr ("host:port"). It tries again while the
// name does not resolve, the host cannot be reached or refuses, and while the
// server goes away in the handshake, because in a job that starts all of this
// passes; it gives up when ctx ends, at once if the server refuses this client
// or is no goccl store.
func DialTCP(ctx context.Context, addr string, cfg DialConfig) (*Client, error) {
	if len(cfg.Job) > maxName || len(cfg.Name) > maxName {
		return nil, fmt.Errorf("goccl: store dial: %w: a job id and a name have at most %d bytes", goccl.ErrInvalid, maxName)
	}
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return nil, fmt.Errorf("goccl: store dial: %w: %w; write host:port", goccl.ErrInvalid, err)
	}
	if cfg.Name == "" {
		cfg.Name = "a client"
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = 5 * time.Minute
	}
	if cfg.Dial == nil {
		cfg.Dial = new(net.Dialer).DialContext
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cfg.Timeout)
		defer cancel()
	}
	conn, err := dialUntil(ctx, addr, cfg)
	if err != nil {
		e := goccl.NewError("store dial", err)
		e.Transport = "tcp " + addr
		return nil, e
	}
	return newClient(conn, addr, cfg.Timeout), nil
}

// dialUntil tries until it has a connection that passed the handshake.
func dialUntil(ctx context.Context, addr string, cfg DialConfig) (net.Conn, error) {
	for n, pause := 1, 10*time.Millisecond; ; n, pause = n+1, min(2*pause, time.Second) {
		conn, err := dialOnce(ctx, addr, cfg)
		if err == nil {
			return conn, nil
		}
		if errors.Is(err, goccl.ErrInvalid) || errors.Is(err, goccl.ErrUnsupported) {
			return nil, err
		}
		cfg.Logger.Info("store cannot be reached yet; trying again", "addr", addr, "attempt", n, "err", err)
		// Random, so that the ranks of a large job do not come in step.
		t := time.NewTimer(pause/2 + rand.N(pause))
		select {
		case <-t.C:
		case <-ctx.Done():
		}
		t.Stop()
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%w; %d attempts, the last failed: %w; check that rank 0 runs and that MASTER_ADDR and MASTER_PORT are its own", ended(ctx), n, err)
		}
	}
}

func dialOnce(ctx context.Context, addr string, cfg DialConfig) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	conn, err := cfg.Dial(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if err := greet(ctx, conn, cfg); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// greet runs the client's side of the handshake.
func greet(ctx context.Context, conn net.Conn, cfg DialConfig) error {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := conn.Write(appendHello(nil, hello{cfg.Job, cfg.Name})); err != nil {
		return fmt.Errorf("handshake with %s: %w", conn.RemoteAddr(), err)
	}
	code, text, err := readWelcome(conn)
	switch {
	case err != nil && !errors.Is(err, goccl.ErrInvalid):
		return fmt.Errorf("handshake with %s: %w", conn.RemoteAddr(), err)
	case err != nil || code > replyRefused:
		return fmt.Errorf("%w: what answers at %s is not a goccl store", goccl.ErrUnsupported, conn.RemoteAddr())
	case code == replyRefused:
		return fmt.Errorf("the server at %s refused this client: %w", conn.RemoteAddr(), refusal(text))
	case !stop():
		return ended(ctx) // the deadline may be on the connection already
	}
	return nil
}
