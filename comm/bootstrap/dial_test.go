package bootstrap

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/wire"
)

// fakeNet answers each dial of an address with the next of its scripted results;
// the last one repeats. nil is a connection.
type fakeNet struct {
	script map[string][]error
	dialed []string
}

var errBlackHole = errors.New("black hole")

func (f *fakeNet) finder() finder {
	return finder{
		dial: func(ctx context.Context, addr string) (net.Conn, error) {
			f.dialed = append(f.dialed, addr)
			rs := f.script[addr]
			if len(rs) == 0 {
				return nil, errors.New("not in the script: " + addr)
			}
			if len(rs) > 1 {
				f.script[addr] = rs[1:]
			}
			if rs[0] == errBlackHole {
				<-ctx.Done()
				return nil, &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}
			}
			if rs[0] != nil {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", rs[0])}
			}
			c, _ := net.Pipe()
			return c, nil
		},
		lookup: func(_ context.Context, name string) ([]netip.Addr, error) {
			rs := f.script[name]
			if len(rs) > 1 {
				f.script[name] = rs[1:]
			}
			if rs[0] != nil {
				return nil, rs[0]
			}
			return []netip.Addr{netip.MustParseAddr("10.0.0.8")}, nil
		},
		nics: func() ([]nic, error) { return []nic{up("eth0", "10.0.0.2")}, nil },
	}
}

func welcome(context.Context, *link) error { return nil }

var (
	firstAddr  = endpoint{addr: netip.MustParseAddr("10.0.0.1"), port: 7}
	secondAddr = endpoint{addr: netip.MustParseAddr("2001:db8::1"), port: 7}
	nameAddr   = endpoint{name: "root.svc", port: 7}
)

// find runs a search in virtual time and returns how long it took there.
func find(t *testing.T, f *fakeNet, limit time.Duration, knock func(context.Context, *link) error, es ...endpoint) (took time.Duration, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		err = f.finder().find(ctx, es, knock)
		took = time.Since(start)
	})
	return took, err
}

// C14: errors of a network that is coming up are retried.
func TestC14RetriesWhileTheNetworkComesUp(t *testing.T) {
	f := &fakeNet{script: map[string][]error{"10.0.0.1:7": {syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.ECONNREFUSED, syscall.ETIMEDOUT, errBlackHole, nil}}}
	_, err := find(t, f, time.Hour, welcome, firstAddr)
	require.NoError(t, err)
	require.Len(t, f.dialed, 6)
}

func TestC14GivesUpAtTheDeadlineWithTheAddress(t *testing.T) {
	f := &fakeNet{script: map[string][]error{"10.0.0.1:7": {syscall.ECONNREFUSED}}}
	took, err := find(t, f, time.Minute, welcome, firstAddr)
	require.Equal(t, time.Minute, took)
	require.ErrorIs(t, err, goccl.ErrTimeout)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.ErrorContains(t, err, "cannot reach the root: timed out: tried 10.0.0.1:7: connect: ")
	require.Less(t, len(f.dialed), 100, "the pauses grow")
}

// C01: an address that leads nowhere costs a short time, once.
func TestC01BlackHoleFirst(t *testing.T) {
	f := &fakeNet{script: map[string][]error{"10.0.0.1:7": {errBlackHole}, "[2001:db8::1]:7": {nil}}}
	took, err := find(t, f, time.Hour, welcome, firstAddr, secondAddr)
	require.NoError(t, err)
	require.Equal(t, firstDial, took)
}

// C06: an address of a family that this host lacks is passed over; if there is no
// other, the error says which families there are.
func TestC06OtherFamily(t *testing.T) {
	f := &fakeNet{script: map[string][]error{"[2001:db8::1]:7": {syscall.ENETUNREACH}, "10.0.0.1:7": {nil}}}
	_, err := find(t, f, time.Hour, welcome, secondAddr, firstAddr)
	require.NoError(t, err)

	f = &fakeNet{script: map[string][]error{"[2001:db8::1]:7": {syscall.EAFNOSUPPORT}}}
	took, err := find(t, f, time.Hour, welcome, secondAddr)
	require.Zero(t, took, "nothing to wait for")
	require.ErrorIs(t, err, goccl.ErrPeerLost)
	require.ErrorContains(t, err, "[2001:db8::1]:7: connect: ")
	require.ErrorContains(t, err, "this host has IPv4 only")
}

// C26: a name that does not resolve yet is looked up again.
func TestC26NameAppearsLater(t *testing.T) {
	dns := &net.DNSError{Err: "no such host", Name: "root.svc", IsNotFound: true}
	f := &fakeNet{script: map[string][]error{"root.svc": {dns, dns, nil}, "10.0.0.8:7": {nil}}}
	_, err := find(t, f, time.Hour, welcome, nameAddr)
	require.NoError(t, err)

	f = &fakeNet{script: map[string][]error{"root.svc": {dns}}}
	_, err = find(t, f, time.Minute, welcome, nameAddr)
	require.ErrorIs(t, err, goccl.ErrTimeout)
	require.ErrorContains(t, err, "root.svc:7: resolve: lookup root.svc: no such host")
}

// A foreign root behind an address that several hosts have is passed over; the
// right root's refusal is final.
func TestForeignRootIsPassedOver(t *testing.T) {
	answers := []error{
		&attemptError{step: "join", then: another, err: &refusedError{wire.Refuse{Code: wire.CodeJob, Rank: 1, Text: "other job"}}},
		nil,
	}
	knock := func(context.Context, *link) error {
		err := answers[0]
		answers = answers[1:]
		return err
	}
	script := func() *fakeNet {
		return &fakeNet{script: map[string][]error{"10.0.0.1:7": {nil}, "[2001:db8::1]:7": {nil}}}
	}
	_, err := find(t, script(), time.Hour, knock, firstAddr, secondAddr)
	require.NoError(t, err)
	require.Empty(t, answers)

	f := script()
	final := &attemptError{step: "join", then: never, err: &refusedError{wire.Refuse{Code: wire.CodeDuplicate, Rank: 1, Text: "taken"}}}
	_, err = find(t, f, time.Hour, func(context.Context, *link) error { return final }, firstAddr, secondAddr)
	require.ErrorIs(t, err, final)
	require.Len(t, f.dialed, 1)
}

// C23: running out of descriptors is not retried, and the error has the limit.
func TestC23OpenFilesErrorIsFinal(t *testing.T) {
	f := &fakeNet{script: map[string][]error{"10.0.0.1:7": {syscall.EMFILE}}}
	took, err := find(t, f, time.Hour, welcome, firstAddr)
	if !isTooManyFiles(syscall.EMFILE) {
		t.Skip("this system has other error numbers")
	}
	require.Zero(t, took)
	require.ErrorContains(t, err, "10.0.0.1:7: connect: too many open files: the limit of this process is ")
}

// C18: the error of a root that dies while we wait has peer, address, step and the
// system's words.
func TestC18RootDiesWhileJoining(t *testing.T) {
	ctx := testContext(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	id, err := newID("", 2, false)
	require.NoError(t, err)
	at := l.Addr().(*net.TCPAddr).AddrPort()
	require.True(t, id.addEndpoint(endpoint{addr: at.Addr(), port: at.Port()}))
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		lk := newLink(c)
		hello, banner, err := greet(lk, id, time.Now().Add(watchdog))
		if err == nil {
			_ = lk.write(wire.Accept{MAC: signAccept(id.secret(), banner, hello)}, time.Now().Add(watchdog))
		}
		_ = c.(*net.TCPConn).SetLinger(0) // closing resets, as the death of a machine's last socket does
		_ = c.Close()
	}()
	_, err = Join(ctx, id, Config{Rank: 1, Size: 2})
	require.ErrorIs(t, err, goccl.ErrPeerLost)
	require.ErrorContains(t, err, "rank 1: join: peer 0 ("+at.String()+"): ")
	require.ErrorContains(t, err, "wait for the other ranks: ")
	var e *goccl.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, 0, e.Peer)
}
