package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/dist/store"
)

const watchdog = 60 * time.Second

// signalLog is a log handler that reports messages over a channel.
type signalLog struct {
	slog.Handler
	lines chan string
}

func newSignalLog() (*slog.Logger, chan string) {
	lines := make(chan string, 1024)
	return slog.New(signalLog{slog.DiscardHandler, lines}), lines
}

func (h signalLog) Enabled(context.Context, slog.Level) bool { return true }

func (h signalLog) Handle(_ context.Context, r slog.Record) error {
	var b bytes.Buffer
	b.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool { fmt.Fprintf(&b, " %s=%v", a.Key, a.Value); return true })
	select {
	case h.lines <- b.String():
	default:
	}
	return nil
}

// failingDial fails with errs in turn and then dials.
func failingDial(errs ...error) func(context.Context, string, string) (net.Conn, error) {
	var n atomic.Int64
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if i := int(n.Add(1)) - 1; i < len(errs) {
			return nil, errs[i]
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
}

func TestC26DNSRetriedUntilTimeout(t *testing.T) {
	noName := &net.DNSError{Err: "no such host", Name: "head.job.svc", IsNotFound: true}
	srv := listen(t, store.ServerConfig{})
	c := dial(t, srv, store.DialConfig{Dial: failingDial(noName, noName, noName)})
	require.NoError(t, c.Set(t.Context(), "k", nil))

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	never := func(context.Context, string, string) (net.Conn, error) { return nil, noName }
	_, err := store.DialTCP(ctx, "head.job.svc:29500", store.DialConfig{Dial: never})
	require.ErrorIs(t, err, goccl.ErrTimeout)
	require.ErrorIs(t, err, noName)
	require.ErrorContains(t, err, "head.job.svc:29500")
	require.ErrorContains(t, err, "no such host")
}

func TestC14RefusedAndUnreachableRetried(t *testing.T) {
	log, lines := newSignalLog()
	var errs []error
	for _, e := range []syscall.Errno{syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.ETIMEDOUT} {
		errs = append(errs, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", e)})
	}
	c := dial(t, listen(t, store.ServerConfig{}), store.DialConfig{Dial: failingDial(errs...), Logger: log})
	require.NoError(t, c.Set(t.Context(), "k", nil))
	for _, e := range errs {
		require.Contains(t, <-lines, e.Error(), "each attempt is logged")
	}
}

// A server that starts after its clients, on the port they were told.
func TestC14ServerComesLate(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	log, lines := newSignalLog()
	got := make(chan error, 1)
	go func() {
		c, err := store.DialTCP(ctx, addr, store.DialConfig{Logger: log})
		if err == nil {
			err = errors.Join(c.Set(ctx, "k", nil), c.Close())
		}
		got <- err
	}()
	require.Contains(t, <-lines, "refused", "the first attempt met no server")
	srv, err := store.ListenTCP(ctx, addr, store.ServerConfig{})
	if errors.Is(err, syscall.EADDRINUSE) {
		t.Skip("another process took the port meanwhile")
	}
	require.NoError(t, err)
	require.NoError(t, <-got)
	require.NoError(t, srv.Close())
}

func TestC27PortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	addr := l.Addr().String()
	_, err = store.ListenTCP(t.Context(), addr, store.ServerConfig{})
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.ErrorContains(t, err, "address "+addr+" in use")
}

func TestC31ExistingListener(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	// A client may come before the server does: the listener is open all along.
	got := make(chan error, 1)
	go func() {
		c, err := store.DialTCP(t.Context(), addr, store.DialConfig{})
		if err == nil {
			err = errors.Join(c.Set(t.Context(), "k", []byte("early")), c.Close())
		}
		got <- err
	}()
	srv, err := store.Serve(l, store.ServerConfig{})
	require.NoError(t, err)
	require.NoError(t, <-got)
	require.Equal(t, addr, srv.Addr().String())
	v, err := srv.Store().Get(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, "early", string(v))
	require.NoError(t, srv.Close())
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed, "the server owned the listener")
}

func TestC24OtherJobRefused(t *testing.T) {
	srv := listen(t, store.ServerConfig{Job: "job A"})
	_, err := store.DialTCP(t.Context(), srv.Addr().String(), store.DialConfig{Job: "job B", Name: "rank 1"})
	require.ErrorIs(t, err, goccl.ErrInvalid)
	require.ErrorContains(t, err, "another job")
	require.ErrorContains(t, err, srv.Addr().String())
	require.NotContains(t, err.Error(), "job A", "the id is not given away")
	require.NoError(t, dial(t, srv, store.DialConfig{Job: "job A"}).Set(t.Context(), "k", nil))
}

func TestC29ServerWaitsForGoodbye(t *testing.T) {
	log, lines := newSignalLog()
	srv, err := store.ListenTCP(t.Context(), "127.0.0.1:0", store.ServerConfig{Clients: 2, Logger: log})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- srv.Shutdown(ctx) }()

	a := dial(t, srv, store.DialConfig{Name: "rank 1"})
	require.NoError(t, a.Set(ctx, "k", []byte("1")))
	require.NoError(t, a.Close())
	b := dial(t, srv, store.DialConfig{Name: "rank 2"}) // a has left, but the server expects one more
	v, err := b.Get(ctx, "k")
	require.NoError(t, err)
	require.Equal(t, "1", string(v))
	select {
	case err := <-ended:
		t.Fatalf("the server ended with a client connected: %v", err)
	default:
	}
	require.NoError(t, b.Close())
	require.NoError(t, <-ended)
	require.Empty(t, lines, "a goodbye is no loss")
}

func TestC29ShutdownIsBounded(t *testing.T) {
	srv := listen(t, store.ServerConfig{Clients: 3})
	c := dial(t, srv, store.DialConfig{Name: "rank 7"})
	waiting := make(chan error, 1)
	go func() {
		_, err := c.Get(t.Context(), "never")
		waiting <- err
	}()
	require.NoError(t, c.Set(t.Context(), "k", nil))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := srv.Shutdown(ctx)
	require.ErrorIs(t, err, goccl.ErrTimeout)
	require.ErrorContains(t, err, "1 of 3 clients came")
	require.ErrorContains(t, err, "rank 7 at 127.0.0.1:")

	err = <-waiting
	require.ErrorIs(t, err, goccl.ErrPeerLost)
	require.ErrorContains(t, err, `"never"`)
	require.ErrorContains(t, err, srv.Addr().String())
	require.NoError(t, c.Close(), "with nothing pending, the end of the server is no fault")
}

func TestC30ManyClientsAtOnce(t *testing.T) {
	const clients = 500
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	srv := listen(t, store.ServerConfig{Clients: clients})
	var wg sync.WaitGroup
	errs := make(chan error, clients)
	for i := range clients {
		wg.Go(func() { errs <- burst(ctx, srv.Addr().String(), i, clients) })
	}
	wg.Wait()
	for range clients {
		require.NoError(t, <-errs)
	}
	require.NoError(t, srv.Shutdown(ctx), "all came and said goodbye")
}

// burst is one client of many: it tells its value, waits until all have, and
// reads its neighbour's.
func burst(ctx context.Context, addr string, i, clients int) error {
	c, err := store.DialTCP(ctx, addr, store.DialConfig{})
	if err != nil {
		return err
	}
	if err := c.Set(ctx, fmt.Sprint("v/", i), fmt.Append(nil, i*i)); err != nil {
		return err
	}
	n, err := c.Add(ctx, "count", 1)
	if err == nil && n == int64(clients) {
		err = c.Set(ctx, "all", nil)
	}
	if err != nil {
		return err
	}
	if _, err := c.Get(ctx, "all"); err != nil {
		return err
	}
	next := (i + 1) % clients
	v, err := c.Get(ctx, fmt.Sprint("v/", next))
	if want := fmt.Sprint(next * next); err == nil && string(v) != want {
		err = fmt.Errorf("client %d: got %s, want %s", i, v, want)
	}
	return errors.Join(err, c.Close())
}

func TestC33WaitNamesKeyAndServer(t *testing.T) {
	srv := listen(t, store.ServerConfig{})
	c := dial(t, srv, store.DialConfig{})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := c.Get(ctx, "barrier/rank 1")
	require.ErrorIs(t, err, goccl.ErrTimeout)
	require.ErrorContains(t, err, `"barrier/rank 1"`)
	require.ErrorContains(t, err, srv.Addr().String())
	require.ErrorContains(t, err, "late or gone")
}

// Silent clients, strangers and a client that reads nothing delay no one.
func TestJunkDelaysNoOne(t *testing.T) {
	log, lines := newSignalLog()
	srv := listen(t, store.ServerConfig{Logger: log})
	open := func(say string) net.Conn {
		conn, err := net.Dial("tcp", srv.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		_, err = conn.Write([]byte(say))
		require.NoError(t, err)
		return conn
	}
	for range 20 {
		open("")
		open("GC")
	}
	for _, junk := range []string{"GET / HTTP/1.1\r\n\r\n", "\x00\xce\xf7\x85\x3c", "GCSXnonsense", "SSH-2.0-x\r\n"} {
		conn := open(junk)
		_, err := io.Copy(io.Discard, conn) // the server closes it
		if err != nil {
			require.ErrorIs(t, err, syscall.ECONNRESET)
		}
		require.Contains(t, <-lines, "refused")
	}
	deaf := open("GCS\x01\x00\x00\x00\x00") // a greeting, then requests whose answers nobody reads
	big := make([]byte, 1<<20)
	c := dial(t, srv, store.DialConfig{})
	require.NoError(t, c.Set(t.Context(), "big", big))
	for range 64 {
		_, err := deaf.Write([]byte("\x08\x00\x00\x00\x01\x00\x00\x00\x02big"))
		require.NoError(t, err)
	}
	n, err := c.Add(t.Context(), "n", 2)
	require.NoError(t, err)
	require.Equal(t, int64(2), n)
}

// A client that is no goccl store is not tried again.
func TestDialStranger(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		conn, err := l.Accept()
		if err == nil {
			_, _ = conn.Write([]byte("SSH-2.0-OpenSSH_9.6\r\n"))
			_, _ = io.Copy(io.Discard, conn)
			conn.Close()
		}
	}()
	_, err = store.DialTCP(t.Context(), l.Addr().String(), store.DialConfig{})
	require.ErrorIs(t, err, goccl.ErrUnsupported)
	require.ErrorContains(t, err, "is not a goccl store")
	require.NoError(t, l.Close())
	<-served
}

func TestDialRefusesBadAddress(t *testing.T) {
	_, err := store.DialTCP(t.Context(), "head", store.DialConfig{})
	require.ErrorIs(t, err, goccl.ErrInvalid)
	require.ErrorContains(t, err, "host:port")
}

func TestC35ServerThatNeverAnswers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, err = store.DialTCP(ctx, l.Addr().String(), store.DialConfig{})
	require.ErrorIs(t, err, goccl.ErrTimeout)
	require.ErrorContains(t, err, l.Addr().String())
	require.ErrorContains(t, err, "handshake")
}

func openFiles(t *testing.T) int {
	fds, err := filepath.Glob("/proc/self/fd/*")
	require.NoError(t, err)
	return len(fds)
}

func TestC16NothingLeaks(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("counts open files in /proc")
	}
	round := func(n int) {
		srv, err := store.ListenTCP(t.Context(), "127.0.0.1:0", store.ServerConfig{Job: "a"})
		require.NoError(t, err)
		for range n {
			_, err := store.DialTCP(t.Context(), srv.Addr().String(), store.DialConfig{Job: "b"})
			require.ErrorIs(t, err, goccl.ErrInvalid)
			c, err := store.DialTCP(t.Context(), srv.Addr().String(), store.DialConfig{Job: "a"})
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err = c.Get(ctx, "never")
			require.ErrorIs(t, err, goccl.ErrAborted)
			require.NoError(t, c.Close())
		}
		require.NoError(t, srv.Close())
	}
	round(3)
	files, routines := openFiles(t), runtime.NumGoroutine()
	round(50)
	require.LessOrEqual(t, openFiles(t), files)
	// A goroutine that has been waited for may take a moment to be gone.
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= routines+1 }, watchdog, time.Millisecond)
}

func BenchmarkTCPSetGet(b *testing.B) {
	srv, err := store.ListenTCP(b.Context(), "127.0.0.1:0", store.ServerConfig{})
	require.NoError(b, err)
	defer srv.Close()
	c, err := store.DialTCP(b.Context(), srv.Addr().String(), store.DialConfig{})
	require.NoError(b, err)
	defer c.Close()
	val := []byte("127.0.0.1:12345")
	for b.Loop() {
		if err := c.Set(b.Context(), "k", val); err != nil {
			b.Fatal(err)
		}
		if _, err := c.Get(b.Context(), "k"); err != nil {
			b.Fatal(err)
		}
	}
}
