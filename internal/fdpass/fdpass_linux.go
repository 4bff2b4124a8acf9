// Package fdpass gives open files to other processes of this machine over unix
// sockets: how memory of a GPU that was made to be shared gets to its peers. Linux
// only.
//
// A message is a note of a few bytes and the files that go with it; it arrives
// whole or not at all. Names of sockets are abstract: nothing lies in the file
// system, and nothing is left when a process is killed. Everybody on the machine
// can see such a name, so both ends check that the other runs as the same user.
package fdpass

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goccl/goccl"
)

// network keeps the borders of messages.
const network = "unixpacket"

// maxFiles is the most files that the kernel takes in one message.
const maxFiles = 253

// Listen returns a listener under a name that nobody can guess; Addr().String()
// is what Dial takes.
func Listen() (*net.UnixListener, error) {
	l, err := net.ListenUnix(network, &net.UnixAddr{Net: network, Name: "@goccl-" + rand.Text()})
	if err != nil {
		return nil, fmt.Errorf("fdpass: %w", err)
	}
	return l, nil
}

// Accept waits for the next connection of a process of the same user. Connections
// of others are closed and not counted.
func Accept(ctx context.Context, l *net.UnixListener) (*net.UnixConn, error) {
	defer bound(ctx, l.SetDeadline)()
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return nil, ended(ctx, "accepting", err)
		}
		if sameUser(c) == nil {
			return c, nil
		}
		_ = c.Close() // not for us
	}
}

// Dial connects to the listener of that name, which must be of the same user.
func Dial(ctx context.Context, name string) (*net.UnixConn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, name)
	if err != nil {
		return nil, ended(ctx, "connecting to "+name, err)
	}
	u := c.(*net.UnixConn)
	if err := sameUser(u); err != nil {
		_ = u.Close() // the first error says more
		return nil, fmt.Errorf("fdpass: %s: %w", name, err)
	}
	return u, nil
}

// sameUser asks the kernel who is at the other end.
func sameUser(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) { cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	if int(cred.Uid) != os.Geteuid() {
		return fmt.Errorf("%w: process %d of user %d is at the other end", goccl.ErrInvalid, cred.Pid, cred.Uid)
	}
	return nil
}

// Send sends a note, of at least one byte, with files, which stay open here.
func Send(ctx context.Context, c *net.UnixConn, note []byte, files ...*os.File) error {
	if len(note) == 0 || len(files) > maxFiles {
		return fmt.Errorf("fdpass: %w: a note of %d bytes with %d files", goccl.ErrInvalid, len(note), len(files))
	}
	defer bound(ctx, c.SetWriteDeadline)()
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	if _, _, err := c.WriteMsgUnix(note, rights, nil); err != nil {
		return ended(ctx, "sending", err)
	}
	return nil
}

// Receive receives a message with a note of at most len(note) bytes and at most
// most files. The caller closes the files. A message that is larger, or whose
// files did not all arrive, is an error and leaves nothing open; the end of the
// connection is io.EOF.
func Receive(ctx context.Context, c *net.UnixConn, note []byte, most int) (n int, files []*os.File, err error) {
	if most < 0 || most > maxFiles {
		return 0, nil, fmt.Errorf("fdpass: %w: %d files in one message", goccl.ErrInvalid, most)
	}
	defer bound(ctx, c.SetReadDeadline)()
	control := make([]byte, unix.CmsgSpace(maxFiles*4))
	n, controls, flags, _, err := c.ReadMsgUnix(note, control)
	if err != nil {
		return 0, nil, ended(ctx, "receiving", err)
	}
	files, err = opened(control[:controls])
	switch {
	case err != nil:
	case n == 0 && len(files) == 0:
		err = io.EOF
	case flags&unix.MSG_TRUNC != 0:
		err = fmt.Errorf("%w: a message of more than %d bytes", goccl.ErrInvalid, len(note))
	case flags&unix.MSG_CTRUNC != 0:
		err = fmt.Errorf("not all files arrived: this process may have too many open (%w)", syscall.EMFILE)
	case len(files) > most:
		err = fmt.Errorf("%w: a message with %d files, at most %d", goccl.ErrInvalid, len(files), most)
	default:
		return n, files, nil
	}
	for _, f := range files {
		_ = f.Close() // nobody gets it
	}
	return 0, nil, fmt.Errorf("fdpass: receiving: %w", err)
}

// opened returns the files that came with a message.
func opened(control []byte) (files []*os.File, err error) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil, err
	}
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			continue // credentials and the like
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	return files, nil
}

// bound makes a connection's calls end with ctx, until the returned function is
// called.
func bound(ctx context.Context, deadline func(time.Time) error) func() {
	_ = deadline(time.Time{}) // fails only on a closed connection, which the call itself reports
	set := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = deadline(time.Unix(1, 0))
		close(set)
	})
	return func() {
		if !stop() {
			<-set // or it would end the next call
		}
	}
}

// ended names what was done, and the cause of ctx when that ended it.
func ended(ctx context.Context, doing string, err error) error {
	if cause := context.Cause(ctx); cause != nil && (errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.Canceled)) {
		err = cause
	}
	return fmt.Errorf("fdpass: %s: %w", doing, err)
}
