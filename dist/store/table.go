package store

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"sync"
)

// table is the map itself, with those who wait for keys. The in-process store
// and the TCP server are thin faces of it. Values in it are never written again:
// they may be handed out and queued without a copy.
type table struct {
	mu    sync.Mutex
	vals  map[string][]byte
	waits map[string]map[*waiter]struct{}
	used  int64 // bytes of keys and values
	limit int64
}

// waiter waits for a key to appear. fn is called once, without the lock, with
// the value that made it appear; it must not block.
type waiter struct {
	key string
	fn  func(val []byte)
}

func newTable() *table {
	return &table{
		vals:  make(map[string][]byte),
		waits: make(map[string]map[*waiter]struct{}),
		limit: MaxTotal,
	}
}

// put stores val, which the table then owns, and returns the waiters to wake
// once the lock is released.
func (t *table) put(key string, val []byte) (map[*waiter]struct{}, error) {
	old, ok := t.vals[key]
	used := t.used + int64(len(val)) - int64(len(old))
	if !ok {
		used += int64(len(key))
	}
	if used > t.limit {
		return nil, refusal(fmt.Sprintf("the store is full: its limit is %d bytes; delete keys that are no longer needed", t.limit))
	}
	t.used, t.vals[key] = used, val
	woken := t.waits[key]
	delete(t.waits, key)
	return woken, nil
}

// owned is a copy of val that is never nil, as nil stands for an absent key.
func owned(val []byte) []byte { return append([]byte{}, val...) }

func wake(ws map[*waiter]struct{}, val []byte) {
	for w := range ws {
		w.fn(val)
	}
}

func (t *table) set(key string, val []byte) error {
	val = owned(val)
	t.mu.Lock()
	ws, err := t.put(key, val)
	t.mu.Unlock()
	wake(ws, val)
	return err
}

// peek returns the value of key as it is now.
func (t *table) peek(key string) ([]byte, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	val, ok := t.vals[key]
	return val, ok
}

// get returns the value of key, or registers fn for it and returns the waiter.
func (t *table) get(key string, fn func([]byte)) (val []byte, w *waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if val, ok := t.vals[key]; ok {
		return val, nil
	}
	w = &waiter{key: key, fn: fn}
	if t.waits[key] == nil {
		t.waits[key] = make(map[*waiter]struct{})
	}
	t.waits[key][w] = struct{}{}
	return nil, w
}

// forget drops w. Its fn may still be running when forget returns.
func (t *table) forget(w *waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.waits[w.key], w)
	if len(t.waits[w.key]) == 0 {
		delete(t.waits, w.key)
	}
}

func (t *table) add(key string, delta int64) (int64, error) {
	t.mu.Lock()
	sum, err := addTo(t.vals[key], delta)
	if err != nil {
		t.mu.Unlock()
		return 0, err
	}
	val := strconv.AppendInt(nil, sum, 10)
	ws, err := t.put(key, val)
	t.mu.Unlock()
	wake(ws, val)
	return sum, err
}

func (t *table) compareAndSwap(key string, old, val []byte) (cur []byte, swapped bool, err error) {
	t.mu.Lock()
	cur, ok := t.vals[key]
	if !swaps(cur, ok, old) {
		t.mu.Unlock()
		return cur, false, nil
	}
	val = owned(val)
	ws, err := t.put(key, val)
	t.mu.Unlock()
	if err != nil {
		return cur, false, err
	}
	wake(ws, val)
	return val, true, nil
}

func (t *table) delete(key string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	val, ok := t.vals[key]
	if ok {
		t.used -= int64(len(key) + len(val))
		delete(t.vals, key)
	}
	return ok
}

// addTo is the arithmetic of Add on a stored value.
func addTo(val []byte, delta int64) (int64, error) {
	var n int64
	if len(val) > 0 {
		var err error
		if n, err = strconv.ParseInt(string(val), 10, 64); err != nil {
			return 0, refusal("the value under this key is not a decimal number, so nothing can be added to it")
		}
	}
	if delta > 0 && n > math.MaxInt64-delta || delta < 0 && n < math.MinInt64-delta {
		return 0, refusal(fmt.Sprintf("%d + %d is outside int64", n, delta))
	}
	return n + delta, nil
}

// swaps is the condition of CompareAndSwap.
func swaps(cur []byte, present bool, old []byte) bool {
	if !present {
		return len(old) == 0
	}
	return bytes.Equal(cur, old)
}
