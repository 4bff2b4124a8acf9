package store

import (
	"bytes"
	"context"
	"sync"

	"github.com/goccl/goccl"
)

// Mem is a store in this process, for ranks that are goroutines and for tests.
type Mem struct {
	t     *table
	where string
	once  sync.Once
	done  chan struct{} // closed by Close
}

var _ Store = (*Mem)(nil)

// NewMem returns a handle of a new, empty store.
func NewMem() *Mem { return newMem(newTable(), "mem") }

func newMem(t *table, where string) *Mem {
	return &Mem{t: t, where: where, done: make(chan struct{})}
}

// Share returns another handle of the same data, with its own Close.
func (m *Mem) Share() *Mem { return newMem(m.t, m.where) }

// begin says why a call cannot start.
func (m *Mem) begin(ctx context.Context, key string, vals ...[]byte) error {
	select {
	case <-m.done:
		return goccl.ErrClosed
	default:
	}
	if ctx.Err() != nil {
		return ended(ctx)
	}
	for _, v := range vals {
		if err := checkValue(v); err != nil {
			return err
		}
	}
	return checkKey(key)
}

// Set implements Store.
func (m *Mem) Set(ctx context.Context, key string, val []byte) error {
	err := m.begin(ctx, key, val)
	if err == nil {
		err = m.t.set(key, val)
	}
	if err != nil {
		return opError("set", key, m.where, err)
	}
	return nil
}

// Get implements Store.
func (m *Mem) Get(ctx context.Context, key string) ([]byte, error) {
	if err := m.begin(ctx, key); err != nil {
		return nil, getError(key, m.where, err)
	}
	came := make(chan []byte, 1)
	val, w := m.t.get(key, func(val []byte) { came <- val })
	if w == nil {
		return bytes.Clone(val), nil
	}
	var err error
	select {
	case val = <-came:
		return bytes.Clone(val), nil
	case <-ctx.Done():
		err = ended(ctx)
	case <-m.done:
		err = goccl.ErrClosed
	}
	m.t.forget(w)
	return nil, getError(key, m.where, err)
}

// Add implements Store.
func (m *Mem) Add(ctx context.Context, key string, delta int64) (int64, error) {
	err := m.begin(ctx, key)
	var sum int64
	if err == nil {
		sum, err = m.t.add(key, delta)
	}
	if err != nil {
		return 0, opError("add", key, m.where, err)
	}
	return sum, nil
}

// CompareAndSwap implements Store.
func (m *Mem) CompareAndSwap(ctx context.Context, key string, old, val []byte) ([]byte, bool, error) {
	err := m.begin(ctx, key, old, val)
	var cur []byte
	var swapped bool
	if err == nil {
		cur, swapped, err = m.t.compareAndSwap(key, old, val)
	}
	if err != nil {
		return nil, false, opError("compare-and-swap", key, m.where, err)
	}
	return bytes.Clone(cur), swapped, nil
}

// Delete implements Store.
func (m *Mem) Delete(ctx context.Context, key string) (bool, error) {
	if err := m.begin(ctx, key); err != nil {
		return false, opError("delete", key, m.where, err)
	}
	return m.t.delete(key), nil
}

// Close ends this handle; other handles of the same data go on.
func (m *Mem) Close() error {
	m.once.Do(func() { close(m.done) })
	return nil
}
