// Package store holds the small key-value stores through which the ranks of a
// job find each other: an in-process one (NewMem), a file shared by the
// processes of one machine (NewFile), a TCP server with its clients (ListenTCP,
// Serve, DialTCP), and a view under a prefix (Prefix). Package storetest is the
// contract that all of them pass.
//
// A store carries addresses, ids and counters while a job starts and ends. It is
// not a data path: no collective goes through it.
package store

import (
	"context"
	"fmt"

	"github.com/goccl/goccl"
)

// Limits of every store. They bound what a client can make another process hold.
const (
	MaxKey   = 8 << 10   // bytes in a key, prefixes included
	MaxValue = 8 << 20   // bytes in a value
	MaxTotal = 256 << 20 // bytes of all keys and values of one store; for a file store, of its log
)

// Store is a map from keys to byte strings shared by the ranks of a job. Its
// methods may be called from any goroutine; a blocked Get does not delay other
// calls. A key is 1 to MaxKey bytes, a value 0 to MaxValue; anything else is
// goccl.ErrInvalid. Slices passed in are copied or sent before the call
// returns, slices that come back belong to the caller.
//
// A call that the context ends fails with an error that matches
// goccl.ErrTimeout (deadline) or goccl.ErrAborted (cancelled) and the context's
// cause, and names the key and the store; unless it is a Get, it may have taken
// effect.
type Store interface {
	// Set stores val under key, over what was there, and wakes those who wait.
	Set(ctx context.Context, key string, val []byte) error

	// Get returns the value of key. It blocks until the key is there or ctx ends.
	// A Get that waits sees the value that made the key appear, even if it is
	// deleted at once.
	Get(ctx context.Context, key string) ([]byte, error)

	// Add adds delta to the decimal number under key, an absent key counting as
	// 0, and returns the sum. Add of 0 reads. Text that is no number and a sum
	// outside int64 are goccl.ErrInvalid and change nothing.
	Add(ctx context.Context, key string, delta int64) (int64, error)

	// CompareAndSwap stores val if the present value equals old, where an absent
	// key equals an empty old. It returns the value after the call (nil if the
	// key is absent) and whether it was this call that stored it.
	CompareAndSwap(ctx context.Context, key string, old, val []byte) (cur []byte, swapped bool, err error)

	// Delete removes key and says whether it was there.
	Delete(ctx context.Context, key string) (bool, error)

	// Close ends this handle: calls in progress fail with goccl.ErrClosed, as do
	// later ones. The data stays for the other handles. Close may be called more
	// than once.
	Close() error
}

// checkKey refuses keys that no store takes.
func checkKey(key string) error {
	if key == "" {
		return refusal("the key is empty")
	}
	if len(key) > MaxKey {
		return refusal(fmt.Sprintf("the key has %d bytes, the limit is %d", len(key), MaxKey))
	}
	return nil
}

// checkValue refuses values that no store takes.
func checkValue(val []byte) error {
	if len(val) > MaxValue {
		return refusal(fmt.Sprintf("the value has %d bytes, the limit is %d", len(val), MaxValue))
	}
	return nil
}

// refusal is the reason why a store does not do what it is asked. It matches
// goccl.ErrInvalid and travels over the wire as its text.
type refusal string

func (r refusal) Error() string { return string(r) }

func (r refusal) Unwrap() error { return goccl.ErrInvalid }
