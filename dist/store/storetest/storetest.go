// Package storetest is the contract of store.Store as a test suite. A new kind of
// store is one when Test passes on it.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/dist/store"
)

// watchdog ends a test that hangs; no test takes a noticeable part of it.
const watchdog = 60 * time.Second

// Test runs the suite. fresh makes a new, empty store and returns a function that
// opens another handle of it; both use t.Cleanup for what they must release,
// but the suite closes the handles.
func Test(t *testing.T, fresh func(t *testing.T) (open func() store.Store)) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, ctx context.Context, open func() store.Store)
	}{
		{"SetGet", setGet},
		{"EmptyValue", emptyValue},
		{"GetWaits", getWaits},
		{"GetNamesKey", getNamesKey},
		{"GetCancelled", getCancelled},
		{"BlockedGetDelaysNoOne", blockedGet},
		{"Add", add},
		{"AddRefusals", addRefusals},
		{"AddConcurrent", addConcurrent},
		{"CompareAndSwap", compareAndSwap},
		{"CompareAndSwapConcurrent", compareAndSwapConcurrent},
		{"Delete", deleteKey},
		{"Limits", limits},
		{"BytesAreOwned", bytesAreOwned},
		{"Close", closeHandle},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), watchdog)
			defer cancel()
			open := fresh(t)
			c.run(t, ctx, func() store.Store {
				s := open()
				t.Cleanup(func() { require.NoError(t, s.Close()) })
				return s
			})
		})
	}
}

func setGet(t *testing.T, ctx context.Context, open func() store.Store) {
	a, b := open(), open()
	for i, n := range []int{1, 2, 255, 4096, 1 << 20} {
		key, val := fmt.Sprintf("k/%d", i), pattern(i, n)
		require.NoError(t, a.Set(ctx, key, val))
		got, err := b.Get(ctx, key)
		require.NoError(t, err)
		require.True(t, bytes.Equal(val, got), "value of %d bytes", n)
	}
	require.NoError(t, b.Set(ctx, "k/0", []byte("again")))
	got, err := a.Get(ctx, "k/0")
	require.NoError(t, err)
	require.Equal(t, "again", string(got))
	got, err = a.Get(ctx, "k/1")
	require.NoError(t, err)
	require.Equal(t, pattern(1, 2), got)
}

func pattern(seed, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8 + seed*31)
	}
	return b
}

func emptyValue(t *testing.T, ctx context.Context, open func() store.Store) {
	a, b := open(), open()
	require.NoError(t, a.Set(ctx, "empty", nil))
	got, err := b.Get(ctx, "empty")
	require.NoError(t, err)
	require.Empty(t, got)
	was, err := b.Delete(ctx, "empty")
	require.NoError(t, err)
	require.True(t, was, "an empty value is a value")
}

func getWaits(t *testing.T, ctx context.Context, open func() store.Store) {
	const n = 4
	setter := open()
	got := make(chan string, 2*n)
	for i := range n {
		s := open()
		for range 2 {
			go func() {
				v, err := s.Get(ctx, "late")
				got <- fmt.Sprint(string(v), err)
			}()
		}
		// The wait of each handle has begun or will; both must end.
		require.NoError(t, setter.Set(ctx, fmt.Sprint("other/", i), []byte("x")))
	}
	require.NoError(t, setter.Set(ctx, "late", []byte("here")))
	for range 2 * n {
		require.Equal(t, "here<nil>", <-got)
	}
}

func getNamesKey(t *testing.T, ctx context.Context, open func() store.Store) {
	s := open()
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	_, err := s.Get(short, "rank/3/addr")
	require.ErrorIs(t, err, goccl.ErrTimeout)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, `rank/3/addr"`)
	var e *goccl.Error
	require.ErrorAs(t, err, &e)
	require.NotEmpty(t, e.Transport, "the error names the store")

	// The handle is as good as before.
	require.NoError(t, s.Set(ctx, "rank/3/addr", []byte("x")))
	got, err := s.Get(ctx, "rank/3/addr")
	require.NoError(t, err)
	require.Equal(t, "x", string(got))
}

func getCancelled(t *testing.T, ctx context.Context, open func() store.Store) {
	s := open()
	why := errors.New("rank 2 failed")
	c, cancel := context.WithCancelCause(ctx)
	done := make(chan error)
	go func() {
		_, err := s.Get(c, "never")
		done <- err
	}()
	require.NoError(t, s.Set(ctx, "other", nil))
	cancel(why)
	err := <-done
	require.ErrorIs(t, err, goccl.ErrAborted)
	require.ErrorIs(t, err, why)

	for _, op := range callsOf(s) {
		require.ErrorIs(t, op.run(c, "k"), why, op.name)
	}
}

func blockedGet(t *testing.T, ctx context.Context, open func() store.Store) {
	s := open()
	const waiters = 8
	done := make(chan string, waiters)
	for i := range waiters {
		go func() {
			v, err := s.Get(ctx, fmt.Sprint("w/", i))
			done <- fmt.Sprint(i, string(v), err)
		}()
	}
	for i := range 20 {
		n, err := s.Add(ctx, "busy", int64(i))
		require.NoError(t, err)
		require.Equal(t, int64(i*(i+1)/2), n)
	}
	for i := waiters - 1; i >= 0; i-- {
		require.NoError(t, s.Set(ctx, fmt.Sprint("w/", i), []byte(fmt.Sprint("v", i))))
	}
	var got, want []string
	for i := range waiters {
		got, want = append(got, <-done), append(want, fmt.Sprint(i, "v", i, "<nil>"))
	}
	require.ElementsMatch(t, want, got)
}

func add(t *testing.T, ctx context.Context, open func() store.Store) {
	a, b := open(), open()
	for _, c := range []struct{ delta, want int64 }{{0, 0}, {5, 5}, {-7, -2}, {math.MaxInt64, math.MaxInt64 - 2}, {2, math.MaxInt64}, {0, math.MaxInt64}} {
		a, b = b, a
		n, err := a.Add(ctx, "n", c.delta)
		require.NoError(t, err)
		require.Equal(t, c.want, n)
	}
	got, err := b.Get(ctx, "n")
	require.NoError(t, err)
	require.Equal(t, "9223372036854775807", string(got), "a number reads as decimal text")
	require.NoError(t, b.Set(ctx, "n", []byte("-41")))
	n, err := a.Add(ctx, "n", 1)
	require.NoError(t, err)
	require.Equal(t, int64(-40), n)
}

func addRefusals(t *testing.T, ctx context.Context, open func() store.Store) {
	s := open()
	for val, delta := range map[string]int64{"12x": 1, "9223372036854775807": 1, "-9223372036854775808": -1, "1.5": 0} {
		require.NoError(t, s.Set(ctx, "n", []byte(val)))
		_, err := s.Add(ctx, "n", delta)
		require.ErrorIs(t, err, goccl.ErrInvalid, val)
		got, err := s.Get(ctx, "n")
		require.NoError(t, err)
		require.Equal(t, val, string(got), "a refused Add changes nothing")
	}
}

func addConcurrent(t *testing.T, ctx context.Context, open func() store.Store) {
	const handles, times = 6, 20
	var mu sync.Mutex
	seen := make(map[int64]int)
	var wg sync.WaitGroup
	errs := make(chan error, handles)
	for range handles {
		s := open()
		wg.Go(func() {
			for range times {
				n, err := s.Add(ctx, "n", 1)
				if err != nil {
					errs <- err
					return
				}
				mu.Lock()
				seen[n]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	close(errs)
	require.NoError(t, <-errs)
	require.Len(t, seen, handles*times)
	for n := int64(1); n <= handles*times; n++ {
		require.Equal(t, 1, seen[n], "sum %d", n)
	}
}

func compareAndSwap(t *testing.T, ctx context.Context, open func() store.Store) {
	a, b := open(), open()
	for _, c := range []struct {
		old, val, cur string
		absent, swap  bool
	}{
		{old: "x", val: "1", absent: true},
		{old: "", val: "1", cur: "1", swap: true},
		{old: "", val: "2", cur: "1"},
		{old: "0", val: "2", cur: "1"},
		{old: "1", val: "2", cur: "2", swap: true},
		{old: "2", val: "2", cur: "2", swap: true},
		{old: "2", val: "", cur: "", swap: true},
		{old: "", val: "3", cur: "3", swap: true},
	} {
		a, b = b, a
		cur, swapped, err := a.CompareAndSwap(ctx, "k", []byte(c.old), []byte(c.val))
		require.NoError(t, err)
		require.Equal(t, c.swap, swapped, "%+v", c)
		require.Equal(t, c.cur, string(cur), "%+v", c)
		require.Equal(t, c.absent, cur == nil, "nil only for an absent key: %+v", c)
	}

	done := make(chan string)
	go func() {
		v, err := a.Get(ctx, "made")
		done <- fmt.Sprint(string(v), err)
	}()
	_, swapped, err := b.CompareAndSwap(ctx, "made", nil, []byte("by swap"))
	require.NoError(t, err)
	require.True(t, swapped)
	require.Equal(t, "by swap<nil>", <-done, "a swap wakes those who wait")
}

func compareAndSwapConcurrent(t *testing.T, ctx context.Context, open func() store.Store) {
	const n = 6
	winners := make(chan string, n)
	curs := make(chan string, n)
	var wg sync.WaitGroup
	for i := range n {
		s := open()
		wg.Go(func() {
			me := fmt.Sprint("rank ", i)
			cur, won, err := s.CompareAndSwap(ctx, "leader", nil, []byte(me))
			if won {
				winners <- me
			}
			curs <- fmt.Sprint(string(cur), err)
		})
	}
	wg.Wait()
	close(winners)
	require.Len(t, winners, 1)
	leader := <-winners
	for range n {
		require.Equal(t, leader+"<nil>", <-curs)
	}
}

func deleteKey(t *testing.T, ctx context.Context, open func() store.Store) {
	a, b := open(), open()
	was, err := a.Delete(ctx, "k")
	require.NoError(t, err)
	require.False(t, was)
	require.NoError(t, a.Set(ctx, "k", []byte("1")))
	was, err = b.Delete(ctx, "k")
	require.NoError(t, err)
	require.True(t, was)
	short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	_, err = a.Get(short, "k")
	require.ErrorIs(t, err, goccl.ErrTimeout)
	n, err := a.Add(ctx, "k", 3)
	require.NoError(t, err)
	require.Equal(t, int64(3), n)

	// A wait sees a value that is gone again before it wakes.
	done := make(chan string)
	c, stop := context.WithTimeout(ctx, watchdog/2)
	defer stop()
	go func() {
		v, err := a.Get(c, "brief/0")
		done <- fmt.Sprint(string(v), err)
	}()
	for {
		require.NoError(t, b.Set(ctx, "brief/0", []byte("seen")))
		_, err = b.Delete(ctx, "brief/0")
		require.NoError(t, err)
		select {
		case got := <-done:
			require.Equal(t, "seen<nil>", got)
			return
		default:
		}
	}
}

func limits(t *testing.T, ctx context.Context, open func() store.Store) {
	s := open()
	for _, key := range []string{"", string(pattern(1, store.MaxKey+1))} {
		for _, op := range callsOf(s) {
			require.ErrorIs(t, op.run(ctx, key), goccl.ErrInvalid, "%s with a key of %d bytes", op.name, len(key))
		}
	}
	big := make([]byte, store.MaxValue+1)
	require.ErrorIs(t, s.Set(ctx, "k", big), goccl.ErrInvalid)
	_, _, err := s.CompareAndSwap(ctx, "k", nil, big)
	require.ErrorIs(t, err, goccl.ErrInvalid)

	key := string(pattern(2, store.MaxKey/2))
	big[5], big[store.MaxValue-1] = 9, 8
	require.NoError(t, s.Set(ctx, key, big[:store.MaxValue]), "the largest value is allowed")
	got, err := s.Get(ctx, key)
	require.NoError(t, err)
	require.True(t, bytes.Equal(big[:store.MaxValue], got))
}

func bytesAreOwned(t *testing.T, ctx context.Context, open func() store.Store) {
	s := open()
	val := []byte("abc")
	require.NoError(t, s.Set(ctx, "set", val))
	_, _, err := s.CompareAndSwap(ctx, "cas", nil, val)
	require.NoError(t, err)
	copy(val, "xyz")
	for _, key := range []string{"set", "cas"} {
		for range 2 {
			got, err := s.Get(ctx, key)
			require.NoError(t, err)
			require.Equal(t, "abc", string(got))
			copy(got, "123")
		}
	}
}

func closeHandle(t *testing.T, ctx context.Context, open func() store.Store) {
	a, b := open(), open()
	require.NoError(t, a.Set(ctx, "k", []byte("v")))
	done := make(chan error)
	go func() {
		_, err := a.Get(ctx, "never")
		done <- err
	}()
	require.NoError(t, a.Close())
	require.ErrorIs(t, <-done, goccl.ErrClosed)
	require.NoError(t, a.Close(), "a second Close does nothing")
	for _, op := range callsOf(a) {
		require.ErrorIs(t, op.run(ctx, "k"), goccl.ErrClosed, op.name)
	}
	got, err := b.Get(ctx, "k")
	require.NoError(t, err, "the other handle goes on")
	require.Equal(t, "v", string(got))
}

type namedCall struct {
	name string
	run  func(ctx context.Context, key string) error
}

// callsOf lists every method that takes a key.
func callsOf(s store.Store) []namedCall {
	return []namedCall{
		{"Set", func(ctx context.Context, key string) error { return s.Set(ctx, key, []byte("1")) }},
		{"Get", func(ctx context.Context, key string) error { _, err := s.Get(ctx, key); return err }},
		{"Add", func(ctx context.Context, key string) error { _, err := s.Add(ctx, key, 1); return err }},
		{"CompareAndSwap", func(ctx context.Context, key string) error {
			_, _, err := s.CompareAndSwap(ctx, key, nil, []byte("1"))
			return err
		}},
		{"Delete", func(ctx context.Context, key string) error { _, err := s.Delete(ctx, key); return err }},
	}
}
