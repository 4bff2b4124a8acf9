package socket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/goccl/goccl"
)

// dial connects to the first address that answers and says hello there.
func (t *Transport) dial(ctx context.Context, addrs []string, h hello) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, t.config.HandshakeTimeout)
	defer cancel()
	unhook := context.AfterFunc(t.ctx, cancel)
	defer unhook()
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		var all error
		again := false
		for _, addr := range addrs {
			conn, err := t.try(ctx, addr, h)
			if err == nil {
				return conn, nil
			}
			all = errors.Join(all, fmt.Errorf("%s: %w", addr, err))
			again = again || passing(err)
		}
		if t.ctx.Err() != nil {
			return nil, goccl.ErrClosed
		}
		if !again {
			return nil, all
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", goccl.ErrTimeout, all)
		case <-time.After(pause):
		}
	}
}

// passing reports errors of a network that is coming up.
func passing(err error) bool {
	for _, e := range []error{syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.ETIMEDOUT} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// try connects to one address. The wait for the answer ends with ctx.
func (t *Transport) try(ctx context.Context, addr string, h hello) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", goccl.ErrTimeout, err)
		}
		return nil, err
	}
	unhook := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	err = greetPeer(conn, h)
	if !unhook() && err == nil {
		err = ctx.Err() // the deadline in the past may still be set
	}
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: it does not answer the handshake: %w", goccl.ErrTimeout, err)
		}
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

func greetPeer(conn net.Conn, h hello) error {
	if _, err := conn.Write(h.encode()); err != nil {
		return err
	}
	var code [1]byte
	if _, err := io.ReadFull(conn, code[:]); err != nil {
		return fmt.Errorf("reading the answer to the handshake: %w", err)
	}
	return replyError(code[0])
}
