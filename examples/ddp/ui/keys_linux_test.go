package ui

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// terminal opens a pseudo-terminal: what is written to keyboard is typed at tty.
func terminal(t *testing.T) (keyboard, tty *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { _ = keyboard.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	tty, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { _ = tty.Close() })
	return keyboard, tty
}

func TestKeys(t *testing.T) {
	keyboard, tty := terminal(t)
	before, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	require.NoError(t, err)
	k, err := startKeys(tty)
	require.NoError(t, err)
	during, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	require.NoError(t, err)
	require.Zero(t, during.Lflag&(unix.ICANON|unix.ECHO))
	require.NotZero(t, during.Lflag&unix.ISIG, "Ctrl-C must stay a signal")
	require.Equal(t, before.Oflag, during.Oflag)
	for _, key := range []byte("kq") { // no newline: keys come one by one
		_, err := keyboard.Write([]byte{key})
		require.NoError(t, err)
		select {
		case got := <-k.C():
			require.Equal(t, key, got)
		case <-time.After(60 * time.Second):
			require.FailNow(t, "the key did not arrive")
		}
	}
	require.NoError(t, k.Close())
	require.NoError(t, k.Close())
	_, open := <-k.C()
	require.False(t, open)
	after, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// TestKeysOfDeadTerminal: the reader ends when the terminal goes away.
func TestKeysOfDeadTerminal(t *testing.T) {
	keyboard, tty := terminal(t)
	k, err := startKeys(tty)
	require.NoError(t, err)
	require.NoError(t, keyboard.Close())
	select {
	case _, open := <-k.C():
		require.False(t, open)
	case <-time.After(60 * time.Second):
		require.FailNow(t, "the reader did not end")
	}
	_ = k.Close() // a terminal that is gone may refuse to be put back
}

func TestNoKeysWithoutTerminal(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	defer func() { require.NoError(t, w.Close()) }()
	_, err = OpenKeys(r)
	require.ErrorIs(t, err, ErrNoKeys)
	_, tty := terminal(t) // not the controlling terminal of this process
	_, err = OpenKeys(tty)
	require.ErrorIs(t, err, ErrNoKeys)
}
