package fdpass

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/internal/leak"
	"github.com/goccl/goccl/internal/testproc"
)

func TestMain(m *testing.M) {
	testproc.Enter(map[string]testproc.Rank{"write": writeInto})
	os.Exit(leak.Check(m))
}

// pair returns both ends of a connection.
func pair(t *testing.T) (here, there *net.UnixConn) {
	t.Helper()
	l, err := Listen()
	require.NoError(t, err)
	defer l.Close()
	here, err = Dial(t.Context(), l.Addr().String())
	require.NoError(t, err)
	there, err = Accept(t.Context(), l)
	require.NoError(t, err)
	t.Cleanup(func() { here.Close(); there.Close() })
	return here, there
}

func memory(t *testing.T, content string) *os.File {
	t.Helper()
	fd, err := unix.MemfdCreate("fdpass-test", unix.MFD_CLOEXEC)
	require.NoError(t, err)
	f := os.NewFile(uintptr(fd), content)
	t.Cleanup(func() { f.Close() })
	_, err = f.WriteString(content)
	require.NoError(t, err)
	return f
}

func content(t *testing.T, f *os.File) string {
	t.Helper()
	b, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<20))
	require.NoError(t, err)
	return string(b)
}

func TestFilesArriveWithTheirNotes(t *testing.T) {
	here, there := pair(t)
	require.NoError(t, Send(t.Context(), here, []byte("two"), memory(t, "a"), memory(t, "b")))
	require.NoError(t, Send(t.Context(), here, []byte("none")))
	note := make([]byte, 16)
	n, files, err := Receive(t.Context(), there, note, 2)
	require.NoError(t, err)
	require.Equal(t, "two", string(note[:n]))
	require.Len(t, files, 2)
	for i, want := range []string{"a", "b"} {
		require.Equal(t, want, content(t, files[i]))
		flags, err := unix.FcntlInt(files[i].Fd(), unix.F_GETFD, 0)
		require.NoError(t, err)
		require.NotZero(t, flags&unix.FD_CLOEXEC, "programs that are started would inherit it")
		require.NoError(t, files[i].Close())
	}
	n, files, err = Receive(t.Context(), there, note, 2)
	require.NoError(t, err)
	require.Equal(t, "none", string(note[:n]))
	require.Empty(t, files)
	require.NoError(t, here.Close())
	_, _, err = Receive(t.Context(), there, note, 2)
	require.ErrorIs(t, err, io.EOF)
}

// What does not fit is refused, and its files are closed: leak.Check sees to it.
func TestWhatIsTooLargeIsRefused(t *testing.T) {
	here, there := pair(t)
	note := make([]byte, 4)
	require.NoError(t, Send(t.Context(), here, []byte("longer"), memory(t, "a")))
	_, _, err := Receive(t.Context(), there, note, 1)
	require.ErrorIs(t, err, goccl.ErrInvalid)
	require.NoError(t, Send(t.Context(), here, []byte("x"), memory(t, "a"), memory(t, "b")))
	_, _, err = Receive(t.Context(), there, note, 1)
	require.ErrorIs(t, err, goccl.ErrInvalid)
	require.NoError(t, Send(t.Context(), here, []byte("next")))
	_, _, err = Receive(t.Context(), there, note, 1)
	require.NoError(t, err, "the connection goes on")
	require.ErrorIs(t, Send(t.Context(), here, nil), goccl.ErrInvalid)
	_, _, err = Receive(t.Context(), there, note, maxFiles+1)
	require.ErrorIs(t, err, goccl.ErrInvalid)
}

func TestWaitsEndWithTheirContext(t *testing.T) {
	_, there := pair(t)
	l, err := Listen()
	require.NoError(t, err)
	defer l.Close()
	cause := errors.New("the reason")
	for name, wait := range map[string]func(ctx context.Context) error{
		"receive": func(ctx context.Context) error { _, _, err := Receive(ctx, there, make([]byte, 1), 0); return err },
		"accept":  func(ctx context.Context) error { _, err := Accept(ctx, l); return err },
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error)
		go func() { ended <- wait(ctx) }()
		cancel(cause)
		require.ErrorIs(t, <-ended, cause, name)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	full := make(chan error)
	go func() {
		for {
			if err := Send(ctx, there, make([]byte, 1<<10)); err != nil {
				full <- err
				return
			}
		}
	}()
	cancel(cause)
	require.ErrorIs(t, <-full, cause, "nobody receives")
	_, err = Dial(t.Context(), "@goccl-nobody")
	require.ErrorContains(t, err, "@goccl-nobody")
}

func writeInto(c *testproc.Child) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := Dial(ctx, c.Arg)
	if err != nil {
		return err
	}
	defer conn.Close()
	note := make([]byte, 64)
	n, files, err := Receive(ctx, conn, note, 1)
	if err != nil {
		return err
	}
	if _, err := files[0].WriteAt(fmt.Appendf(nil, "%s from rank %d", note[:n], c.Rank), 0); err != nil {
		return err
	}
	return Send(ctx, conn, []byte("done"))
}

func TestBetweenProcesses(t *testing.T) {
	l, err := Listen()
	require.NoError(t, err)
	defer l.Close()
	require.True(t, strings.HasPrefix(l.Addr().String(), "@goccl-"))
	g := testproc.Start(t, "write", 2, testproc.Options{Arg: l.Addr().String()})
	var conns []*net.UnixConn
	var files []*os.File
	for i := range g.Procs {
		c, err := Accept(t.Context(), l)
		require.NoError(t, err)
		defer c.Close()
		f := memory(t, "")
		require.NoError(t, Send(t.Context(), c, fmt.Appendf(nil, "file %d", i), f))
		conns, files = append(conns, c), append(files, f)
	}
	for i, c := range conns {
		n, _, err := Receive(t.Context(), c, make([]byte, 16), 0)
		require.NoError(t, err)
		require.Equal(t, len("done"), n)
		require.Regexp(t, fmt.Sprintf("^file %d from rank [01]$", i), content(t, files[i]))
	}
	g.Wait(t)
}
