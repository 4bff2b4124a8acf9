package store

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/goccl/goccl"
)

// Client is a store whose data a Server holds. Its calls share one connection
// and do not wait for each other. A lost connection is final: all calls fail
// with an error that matches goccl.ErrPeerLost.
type Client struct {
	conn    net.Conn
	addr    string
	timeout time.Duration
	once    sync.Once
	send    chan []byte   // frames for the writer
	done    chan struct{} // closed when err is set
	wg      sync.WaitGroup

	mu      sync.Mutex
	err     error // why the client ended
	closing bool  // Close was called: whatever happens now is no loss
	last    uint32
	calls   map[uint32]chan reply
}

type reply struct {
	code byte
	body []byte // owned by the receiver
}

var _ Store = (*Client)(nil)

func newClient(conn net.Conn, addr string, timeout time.Duration) *Client {
	c := &Client{
		conn:    conn,
		addr:    addr,
		timeout: timeout,
		send:    make(chan []byte, 16),
		done:    make(chan struct{}),
		calls:   make(map[uint32]chan reply),
	}
	c.wg.Go(c.read)
	c.wg.Go(c.write)
	return c
}

func (c *Client) where() string { return "tcp " + c.addr }

// fail ends the client; the first reason stays.
func (c *Client) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		err = goccl.ErrClosed
	}
	if c.err == nil {
		c.err = err
		close(c.done)
		c.conn.Close()
	}
}

// read hands replies to their callers until the connection ends.
func (c *Client) read() {
	r := bufio.NewReader(c.conn)
	for {
		frame, err := readFrame(r)
		if err != nil {
			c.fail(fmt.Errorf("%w: the store server is gone: %w; see the log of the rank that held it", goccl.ErrPeerLost, err))
			return
		}
		id, code, body, err := parseReply(frame)
		if err != nil {
			c.fail(fmt.Errorf("%w: the store server sent nonsense: %w", goccl.ErrPeerLost, err))
			return
		}
		if code == replyClosing {
			c.fail(fmt.Errorf("%w: the store server has closed; the rank that held it ended first", goccl.ErrPeerLost))
			return
		}
		c.mu.Lock()
		to := c.calls[id]
		delete(c.calls, id)
		c.mu.Unlock()
		if to != nil { // else its caller gave up
			to <- reply{code, body}
		}
	}
}

// write sends frames. A server that takes none for writeBudget is stopped or
// unreachable.
func (c *Client) write() {
	w := bufio.NewWriter(c.conn)
	for {
		select {
		case frame := <-c.send:
			_ = c.conn.SetWriteDeadline(time.Now().Add(writeBudget))
			_, err := w.Write(frame)
			if err == nil && len(c.send) == 0 {
				err = w.Flush()
			}
			if err != nil {
				c.fail(fmt.Errorf("%w: the store server takes no requests: %w", goccl.ErrPeerLost, err))
				return
			}
		case <-c.done:
			return
		}
	}
}

// call sends r and waits for its reply.
func (c *Client) call(ctx context.Context, r request) ([]byte, error) {
	for _, err := range [...]error{checkKey(r.key), checkValue(r.old), checkValue(r.body)} {
		if err != nil && r.op != opBye {
			return nil, err
		}
	}
	if _, ok := ctx.Deadline(); !ok && r.op != opGet {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	if ctx.Err() != nil {
		return nil, ended(ctx)
	}
	answer := make(chan reply, 1)
	c.mu.Lock()
	if err := c.refuses(r.op); err != nil {
		c.mu.Unlock()
		return nil, err
	}
	r.id = c.freeID()
	c.calls[r.id] = answer
	c.mu.Unlock()

	sent := false
	select {
	case c.send <- appendRequest(nil, r):
		sent = true
	case <-ctx.Done():
	case <-c.done:
	}
	if sent {
		select {
		case a := <-answer:
			return accept(a)
		case <-ctx.Done():
		case <-c.done:
		}
	}
	return c.giveUp(ctx, r, answer, sent)
}

// refuses says why no call can start; c.mu is held.
func (c *Client) refuses(op byte) error {
	if c.err == nil && c.closing && op != opBye {
		return goccl.ErrClosed
	}
	return c.err
}

// giveUp ends a call without a reply, unless the reply has just come.
func (c *Client) giveUp(ctx context.Context, r request, answer chan reply, sent bool) ([]byte, error) {
	c.mu.Lock()
	delete(c.calls, r.id)
	err := c.err
	c.mu.Unlock()
	select {
	case a := <-answer:
		return accept(a)
	default:
	}
	if err != nil {
		return nil, err
	}
	if sent && r.op == opGet { // the server forgets the wait; if it cannot be told now, its late reply is dropped
		select {
		case c.send <- appendRequest(nil, request{id: r.id, op: opCancel}):
		default:
		}
	}
	return nil, ended(ctx)
}

// accept turns a refusal into an error.
func accept(a reply) ([]byte, error) {
	if a.code == replyOK {
		return a.body, nil
	}
	return nil, refusal(strings.ToValidUTF8(string(a.body), "?"))
}

// freeID returns an id that no call has; c.mu is held. It wraps around past 0,
// which is the server's.
func (c *Client) freeID() uint32 {
	for {
		c.last++
		if _, used := c.calls[c.last]; !used && c.last != 0 {
			return c.last
		}
	}
}

// Set implements Store.
func (c *Client) Set(ctx context.Context, key string, val []byte) error {
	if _, err := c.call(ctx, request{op: opSet, key: key, body: val}); err != nil {
		return opError("set", key, c.where(), err)
	}
	return nil
}

// Get implements Store.
func (c *Client) Get(ctx context.Context, key string) ([]byte, error) {
	val, err := c.call(ctx, request{op: opGet, key: key})
	if err != nil {
		return nil, getError(key, c.where(), err)
	}
	return val, nil
}

// Add implements Store.
func (c *Client) Add(ctx context.Context, key string, delta int64) (int64, error) {
	b, err := c.call(ctx, request{op: opAdd, key: key, num: delta})
	if err == nil && len(b) != 8 {
		err = errBadReply
	}
	if err != nil {
		return 0, opError("add", key, c.where(), err)
	}
	return int64(binary.LittleEndian.Uint64(b)), nil
}

// CompareAndSwap implements Store.
func (c *Client) CompareAndSwap(ctx context.Context, key string, old, val []byte) ([]byte, bool, error) {
	b, err := c.call(ctx, request{op: opCAS, key: key, old: old, body: val})
	if err != nil {
		return nil, false, opError("compare-and-swap", key, c.where(), err)
	}
	cur, swapped, err := parseSwap(b)
	if err != nil {
		return nil, false, opError("compare-and-swap", key, c.where(), errBadReply)
	}
	return cur, swapped, nil
}

// Delete implements Store.
func (c *Client) Delete(ctx context.Context, key string) (bool, error) {
	b, err := c.call(ctx, request{op: opDelete, key: key})
	if err == nil && len(b) != 1 {
		err = errBadReply
	}
	if err != nil {
		return false, opError("delete", key, c.where(), err)
	}
	return b[0] != 0, nil
}

var errBadReply = fmt.Errorf("%w: the server's reply has the wrong length: use the same goccl on all ranks", goccl.ErrMismatch)

// Close says goodbye to the server, so that it knows that this client lacks
// nothing, and ends the connection. It waits at most a second for the answer. It
// returns nil also when the server has gone before.
func (c *Client) Close() error {
	c.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeWait)
		defer cancel()
		c.mu.Lock()
		c.closing = true
		c.mu.Unlock()
		_, _ = c.call(ctx, request{op: opBye}) // without an answer the server notices the end all the same
		c.fail(goccl.ErrClosed)
	})
	c.wg.Wait()
	return nil
}
