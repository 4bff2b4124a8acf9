//go:build unix

package launch

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
)

const canInherit = true

// signalGroup sends sig to the process and all it started, except those that
// made a group of their own.
func signalGroup(p *os.Process, sig os.Signal) error {
	s, ok := sig.(syscall.Signal)
	if !ok {
		return errors.ErrUnsupported
	}
	return syscall.Kill(-p.Pid, s)
}

// killGroup kills what is left of the group.
func killGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }

// resume continues a process that is stopped.
func resume(p *process) { _ = p.signal(syscall.SIGCONT) }

// exitSignal returns the signal that ended a process, or nil.
func exitSignal(s *os.ProcessState) os.Signal {
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return ws.Signal()
	}
	return nil
}

// listeningAddr returns the address at which the socket fd listens.
func listeningAddr(fd int) (string, error) {
	if on, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_ACCEPTCONN); err != nil {
		return "", os.NewSyscallError("getsockopt", err)
	} else if on == 0 {
		return "", errors.New("the socket does not listen")
	}
	sa, err := syscall.Getsockname(fd)
	if err != nil {
		return "", os.NewSyscallError("getsockname", err)
	}
	switch sa := sa.(type) {
	case *syscall.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port)).String(), nil
	case *syscall.SockaddrInet6:
		return net.JoinHostPort(netip.AddrFrom16(sa.Addr).String(), strconv.Itoa(sa.Port)), nil
	}
	return "", errors.New("the socket is not TCP")
}
