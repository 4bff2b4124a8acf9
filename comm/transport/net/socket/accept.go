package socket

import (
	"errors"
	"io"
	"net"
	"time"
)

// accept takes clients until the transport is closed. Each says who it is in a
// goroutine of its own, so that none holds up another.
func (t *Transport) accept() {
	pause := time.Millisecond
	for {
		conn, err := t.listener.Accept()
		if err == nil {
			pause = time.Millisecond
			t.wait.Go(func() { t.greet(conn) })
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
		// Out of descriptors, or a client that went away at once.
		t.config.Logger.Warn("socket transport: accepting a connection", "err", err)
		select {
		case <-t.ctx.Done():
			return
		case <-time.After(pause):
			pause = min(2*pause, time.Second)
		}
	}
}

// greet reads a client's hello and gives the connection to the side that waits
// for it. Clients that are not expected are closed, and logged.
func (t *Transport) greet(conn net.Conn) {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		conn.Close()
		return
	}
	t.clients[conn] = true
	t.mu.Unlock()
	err := t.handshake(conn)
	t.mu.Lock()
	delete(t.clients, conn)
	t.mu.Unlock()
	if err != nil {
		conn.Close()
		t.config.Logger.Warn("socket transport: refused a client", "client", conn.RemoteAddr().String(), "err", err)
	}
}

func (t *Transport) handshake(conn net.Conn) error {
	if err := conn.SetDeadline(time.Now().Add(t.config.HandshakeTimeout)); err != nil {
		return err
	}
	var b [helloBytes]byte
	if _, err := io.ReadFull(conn, b[:]); err != nil {
		return err
	}
	g, err := decodeHello(b[:])
	if err != nil {
		return err
	}
	// Taken out, so that a second sender finds nothing.
	t.mu.Lock()
	side := t.waiting[g.token]
	delete(t.waiting, g.token)
	t.mu.Unlock()
	if side == nil {
		return errors.Join(reply(conn, replyUnknown), replyError(replyUnknown))
	}
	err = g.same(side.conn)
	if err != nil {
		err = errors.Join(err, reply(conn, replyMismatch))
	} else if err = reply(conn, replyWelcome); err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err == nil {
		return side.attach(conn)
	}
	t.mu.Lock()
	if !t.closed && t.sides[side] {
		t.waiting[g.token] = side // for a sender that does better
	}
	t.mu.Unlock()
	return err
}

func reply(conn net.Conn, code byte) error {
	_, err := conn.Write([]byte{code})
	return err
}
