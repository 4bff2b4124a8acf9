package bootstrap

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/goccl/goccl"
)

// locals finds the roots of this process that use in-memory connections. The whole
// id is the key, so knowing the secret is what opens the door here too.
var locals sync.Map // UniqueID -> *localListener

// localListener hands out the far ends of in-memory connections.
type localListener struct {
	queue chan net.Conn
	gone  chan struct{}
	once  sync.Once
	id    atomic.Pointer[UniqueID] // under which it is found
}

var _ net.Listener = (*localListener)(nil)

func newLocalListener() *localListener {
	return &localListener{queue: make(chan net.Conn), gone: make(chan struct{})}
}

// publish makes the listener reachable through id.
func (l *localListener) publish(id UniqueID) {
	l.id.Store(&id)
	locals.Store(id, l)
}

func (l *localListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.gone:
		return nil, net.ErrClosed
	}
}

func (l *localListener) Close() error {
	l.once.Do(func() {
		close(l.gone)
		if id := l.id.Load(); id != nil {
			locals.Delete(*id)
		}
	})
	return nil
}

func (l *localListener) Addr() net.Addr { return localAddr{} }

// localAddr is the address of an in-memory root.
type localAddr struct{}

func (localAddr) Network() string { return "pipe" }
func (localAddr) String() string  { return "in process" }

// dialLocal connects to the root with this id in this process.
func dialLocal(ctx context.Context, id UniqueID) (net.Conn, error) {
	v, ok := locals.Load(id)
	if !ok {
		return nil, fmt.Errorf("%w: no root with this id is open in this process; an id of ListenLocal serves only the process that made it", goccl.ErrClosed)
	}
	l := v.(*localListener)
	near, far := net.Pipe()
	var err error
	select {
	case l.queue <- far:
		return near, nil
	case <-l.gone:
		err = fmt.Errorf("%w: the root was closed", goccl.ErrClosed)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	_ = near.Close() // an in-memory pipe: closing cannot fail
	_ = far.Close()
	return nil, err
}
