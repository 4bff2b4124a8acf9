package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/goccl/goccl"
)

// File is a store in a file, for processes of one machine. Writers take a lock
// on the file, readers take none.
//
// A process may be killed at any moment without harm to the others: the system
// drops its lock, and the next writer cuts off what it left half written. Data
// is not synced to disk, so the file does not outlive a power failure. The log
// only grows, to MaxTotal bytes: it is made for start-up, not for heartbeats.
type File struct {
	path string
	f    *os.File
	once sync.Once
	done chan struct{} // closed by Close

	t *table // what was read so far

	mu     sync.Mutex // below, and replay into t
	off    int64      // end of the last good record read
	closed bool
}

var _ Store = (*File)(nil)

const (
	// A reader looks at the file size again after pollMin, then ever more seldom
	// up to pollMax: a look costs about a microsecond, a start-up waits once.
	pollMin = time.Millisecond
	pollMax = 25 * time.Millisecond

	// lockWait bounds the wait for a writer that was stopped while it held the
	// lock, for calls whose context has no deadline.
	lockWait = time.Minute
)

// NewFile opens the store in the file at path and creates it if need be. The
// keys of an earlier run are still there: give each job its own path, or a
// Prefix that holds its job id. A file that is no store is refused and left as
// it is. The file stays when all handles are closed; its directory belongs to
// the caller.
func NewFile(path string) (*File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("goccl: store file: %w", err)
	}
	s := &File{path: path, f: f, done: make(chan struct{}), t: newTable()}
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	if err := s.locked(ctx, s.begin); err != nil {
		return nil, fmt.Errorf("goccl: store file %s: %w", path, errors.Join(err, f.Close()))
	}
	return s, nil
}

func (s *File) where() string { return "file " + s.path }

// begin writes the header into an empty file, under the lock.
func (s *File) begin() error {
	got := make([]byte, len(fileHeader))
	n, err := s.f.ReadAt(got, 0)
	if err != nil && err != io.EOF {
		return err
	}
	got = got[:n]
	if n < len(fileHeader) && bytes.HasPrefix([]byte(fileHeader), got) { // new, or its creator was killed
		if _, err := s.f.WriteAt([]byte(fileHeader), 0); err != nil {
			return err
		}
	} else if string(got) != fileHeader {
		return refusal("it is not a goccl store; name a file that does not exist yet")
	}
	s.off = int64(len(fileHeader))
	return nil
}

// locked runs fn with s.mu and the lock on the file held.
func (s *File) locked(ctx context.Context, fn func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return goccl.ErrClosed
	}
	if ctx.Err() != nil {
		return ended(ctx)
	}
	if err := s.lock(ctx); err != nil {
		return err
	}
	return errors.Join(fn(), unlockFile(s.f))
}

// lock takes the file lock. It tries rather than blocks in the system, so that
// ctx can end it.
func (s *File) lock(ctx context.Context) error {
	var cancel context.CancelFunc
	if _, ok := ctx.Deadline(); !ok {
		ctx, cancel = context.WithTimeout(ctx, lockWait)
		defer cancel()
	}
	for pause := 50 * time.Microsecond; ; pause = min(2*pause, 5*time.Millisecond) {
		ok, err := tryLockFile(s.f)
		if ok || err != nil {
			return err
		}
		// Random, so that two who collided do not collide again.
		if err := s.sleep(ctx, pause/2+rand.N(pause)); err != nil {
			if errors.Is(err, goccl.ErrTimeout) {
				err = fmt.Errorf("%w; another process holds the lock on the file", err)
			}
			return err
		}
	}
}

// sleep returns nil after d, or why it ended earlier.
func (s *File) sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	case <-s.done:
		return goccl.ErrClosed
	}
}

// replay reads the records that were added since the last time. s.mu is held;
// the file lock need not be.
func (s *File) replay() error {
	st, err := s.f.Stat()
	if err != nil {
		return err
	}
	if st.Size() <= s.off {
		return nil
	}
	if st.Size() > MaxTotal+MaxKey+MaxValue {
		return refusal(fmt.Sprintf("the file has %d bytes, the limit is %d", st.Size(), MaxTotal))
	}
	b := make([]byte, st.Size()-s.off)
	n, err := s.f.ReadAt(b, s.off)
	if err != nil && err != io.EOF { // a writer may have cut off a broken end meanwhile
		return err
	}
	for b = b[:n]; ; {
		r, n := readRecord(b)
		if n == 0 {
			return nil
		}
		if r.kind == recordDelete {
			s.t.delete(r.key)
		} else if err := s.t.set(r.key, r.val); err != nil {
			return err
		}
		s.off += int64(n)
		b = b[n:]
	}
}

// write appends r. Both locks are held and replay has run, so that whatever lies
// behind s.off was left by a writer that was killed.
func (s *File) write(r record) error {
	b := appendRecord(nil, r)
	if s.off+int64(len(b)) > MaxTotal {
		return refusal(fmt.Sprintf("the file is full: its limit is %d bytes; use a tcp store for long-lived keys", MaxTotal))
	}
	if err := s.f.Truncate(s.off); err != nil {
		return err
	}
	if _, err := s.f.WriteAt(b, s.off); err != nil {
		return err
	}
	return s.replay()
}

// update runs one read-modify-write.
func (s *File) update(ctx context.Context, op, key string, fn func() error) error {
	err := checkKey(key)
	if err == nil {
		err = s.locked(ctx, func() error {
			if err := s.replay(); err != nil {
				return err
			}
			return fn()
		})
	}
	if err != nil {
		return opError(op, key, s.where(), err)
	}
	return nil
}

// Set implements Store.
func (s *File) Set(ctx context.Context, key string, val []byte) error {
	return s.update(ctx, "set", key, func() error {
		if err := checkValue(val); err != nil {
			return err
		}
		return s.write(record{recordPut, key, val})
	})
}

// Add implements Store.
func (s *File) Add(ctx context.Context, key string, delta int64) (sum int64, err error) {
	err = s.update(ctx, "add", key, func() (err error) {
		val, _ := s.t.peek(key)
		if sum, err = addTo(val, delta); err != nil {
			return err
		}
		return s.write(record{recordPut, key, strconv.AppendInt(nil, sum, 10)})
	})
	return sum, err
}

// CompareAndSwap implements Store.
func (s *File) CompareAndSwap(ctx context.Context, key string, old, val []byte) (cur []byte, swapped bool, err error) {
	err = s.update(ctx, "compare-and-swap", key, func() error {
		if err := errors.Join(checkValue(old), checkValue(val)); err != nil {
			return err
		}
		have, ok := s.t.peek(key)
		if cur, swapped = bytes.Clone(have), swaps(have, ok, old); !swapped {
			return nil
		}
		cur = owned(val)
		return s.write(record{recordPut, key, val})
	})
	if err != nil {
		return nil, false, err
	}
	return cur, swapped, nil
}

// Delete implements Store.
func (s *File) Delete(ctx context.Context, key string) (was bool, err error) {
	err = s.update(ctx, "delete", key, func() error {
		if _, was = s.t.peek(key); !was {
			return nil
		}
		return s.write(record{recordDelete, key, nil})
	})
	return was && err == nil, err
}

// Get implements Store. A wait notices what another process writes within 25 ms.
func (s *File) Get(ctx context.Context, key string) ([]byte, error) {
	val, err := s.await(ctx, key)
	if err != nil {
		return nil, getError(key, s.where(), err)
	}
	return bytes.Clone(val), nil
}

func (s *File) await(ctx context.Context, key string) ([]byte, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	came := make(chan []byte, 1)
	val, w := s.t.get(key, func(val []byte) { came <- val })
	if w == nil {
		return val, nil
	}
	defer s.t.forget(w)
	for pause := pollMin; ; pause = min(pause+pause/2, pollMax) {
		t := time.NewTimer(pause)
		select {
		case val := <-came:
			t.Stop()
			return val, nil
		case <-ctx.Done():
			t.Stop()
			return nil, ended(ctx)
		case <-s.done:
			t.Stop()
			return nil, goccl.ErrClosed
		case <-t.C:
		}
		if err := s.look(ctx); err != nil {
			return nil, err
		}
	}
}

// look reads what is new in the file.
func (s *File) look(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return goccl.ErrClosed
	}
	if ctx.Err() != nil {
		return ended(ctx)
	}
	return s.replay()
}

// Close implements Store. The file stays.
func (s *File) Close() (err error) {
	s.once.Do(func() {
		close(s.done)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.closed = true
		err = s.f.Close()
	})
	return err
}
