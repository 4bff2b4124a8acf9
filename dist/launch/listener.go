package launch

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"

	"github.com/goccl/goccl"
)

// listenFD is the descriptor of the listener in rank 0: the first one after the
// standard three.
const listenFD = 3

// rendezvous is the open listener at which the ranks meet.
type rendezvous struct {
	l          net.Listener
	file       *os.File // a copy to inherit; nil where that is not possible
	host, port string
}

// openRendezvous opens a listener on a free port of the loopback address. It
// stays open until rank 0 has it, so no other process can take the port.
func openRendezvous() (*rendezvous, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("goccl: launch: open the rendezvous listener: %w", err)
	}
	r := &rendezvous{l: l}
	r.host, r.port, err = net.SplitHostPort(l.Addr().String())
	if tcp, ok := l.(*net.TCPListener); ok && err == nil && canInherit {
		r.file, err = tcp.File()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("goccl: launch: hand over the rendezvous listener: %w", err), l.Close())
	}
	return r, nil
}

// hand gives the command of a rank what it inherits.
func (r *rendezvous) hand(cmd *exec.Cmd, rank int, extra []*os.File) {
	if !canInherit {
		return
	}
	var first *os.File // nil is a closed descriptor
	if rank == 0 {
		first = r.file
		cmd.Env = append(cmd.Env, EnvListenFD+"="+strconv.Itoa(listenFD))
	}
	cmd.ExtraFiles = append([]*os.File{first}, extra...)
}

// Close closes this process's copies.
func (r *rendezvous) Close() error {
	err := r.l.Close()
	if r.file != nil {
		err = errors.Join(err, r.file.Close())
	}
	return err
}

// taken is set when the inherited descriptor has been taken: there is one per
// process, and its number belongs to someone else afterwards.
var taken atomic.Bool

// InheritedListener returns the listener that the launcher handed to this
// process, if it did. lookup reads the environment, as os.LookupEnv does. The
// listener is the caller's to close, and is not passed on to processes that the
// caller starts. A second call in a process is an error, as is a descriptor that
// is not the listener at MASTER_ADDR:MASTER_PORT, which is what a process finds
// that inherited the variable but not the file.
func InheritedListener(lookup func(string) (string, bool)) (net.Listener, bool, error) {
	text, ok := lookup(EnvListenFD)
	if !ok || text == "" {
		return nil, false, nil
	}
	l, err := inherit(text, lookup)
	if err != nil {
		return nil, false, fmt.Errorf("goccl: listener from the launcher (%s=%s): %w", EnvListenFD, text, err)
	}
	return l, true, nil
}

func inherit(text string, lookup func(string) (string, bool)) (net.Listener, error) {
	fd, err := strconv.Atoi(text)
	if err != nil || fd < listenFD {
		return nil, fmt.Errorf("%w: not the number of a descriptor", goccl.ErrInvalid)
	}
	if taken.Load() {
		return nil, fmt.Errorf("%w: it was taken before; a process has one", goccl.ErrInvalid)
	}
	host, _ := lookup("MASTER_ADDR")
	port, _ := lookup("MASTER_PORT")
	want := net.JoinHostPort(host, port)
	got, err := listeningAddr(fd)
	if err == nil && got != want {
		err = fmt.Errorf("it listens on %s, not on %s", got, want)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: descriptor %d is not the listener: %w; run the program itself and not through a wrapper that closes files, as go run does", goccl.ErrInvalid, fd, err)
	}
	if taken.Swap(true) {
		return nil, fmt.Errorf("%w: it was taken before; a process has one", goccl.ErrInvalid)
	}
	f := os.NewFile(uintptr(fd), "listener "+want)
	l, err := net.FileListener(f) // a copy that is closed on exec
	return l, errors.Join(err, f.Close())
}
