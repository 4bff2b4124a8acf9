package bootstrap

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/wire"
)

var (
	acceptNothing = wire.Accept{}
	twoMembers    = wire.Roster{Members: []wire.Member{{PID: 1, Host: "a"}, {PID: 2, Host: "b"}}}
)

func mustID(t *testing.T, size int) UniqueID {
	t.Helper()
	id, err := newID("job", size, false)
	require.NoError(t, err)
	return id
}

func rootAddr(t *testing.T, r *Root) string {
	t.Helper()
	es := r.ID().endpoints()
	require.NotEmpty(t, es)
	return es[0].String()
}

// shake does the rank's side of a handshake by hand and returns the answer.
func shake(t *testing.T, addr string, id UniqueID, edit func(frame []byte)) wire.Message {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer c.Close()
	l := newLink(c)
	l.setHard(time.Now().Add(watchdog))
	m, err := l.read(wire.MaxHello)
	require.NoError(t, err)
	hello := wire.Hello{Job: id.job(), Rank: 1, Size: id.size(), PID: 77, Host: "elsewhere"}
	hello.MAC = signHello(id.secret(), m.(wire.Banner), hello.SignedBody())
	frame := wire.Append(nil, hello)
	if edit != nil {
		edit(frame)
	}
	_, err = c.Write(frame)
	require.NoError(t, err)
	answer, err := l.read(wire.MaxUp)
	require.NoError(t, err)
	return answer
}

func TestC24ForeignersAreRefusedWithTheReason(t *testing.T) {
	ctx := testContext(t)
	root := openRoot(t, "tcp", RootOptions{Size: 2, Job: "A"})
	serveRoot(ctx, t, root)
	addr := rootAddr(t, root)

	other, err := newID("B", 2, false)
	require.NoError(t, err)
	m := shake(t, addr, other, nil).(wire.Refuse)
	require.Equal(t, wire.CodeJob, m.Code)
	require.Contains(t, m.Text, "other job")
	require.Contains(t, m.Text, "rank 1 (host elsewhere, pid 77)")

	stale, err := newID("A", 2, false)
	require.NoError(t, err)
	m = shake(t, addr, stale, nil).(wire.Refuse)
	require.Equal(t, wire.CodeSecret, m.Code)

	m = shake(t, addr, root.ID(), func(f []byte) { f[wire.HeaderSize+wire.JobSize] ^= 1 }).(wire.Refuse)
	require.Equal(t, wire.CodeSecret, m.Code, "a changed rank breaks the signature")

	m = shake(t, addr, root.ID(), func(f []byte) { f[2]++ }).(wire.Refuse)
	require.Equal(t, wire.CodeVersion, m.Code)
	require.Contains(t, m.Text, "wire version 2")

	m = shake(t, addr, root.ID(), func(f []byte) { f[3] = byte(wire.KindPing) }).(wire.Refuse)
	require.Equal(t, wire.CodeMalformed, m.Code)

	// The same through Join: the id of job B leads to A's port.
	require.True(t, other.addEndpoint(root.ID().endpoints()[0]))
	_, err = Join(ctx, other, Config{Rank: 1, Size: 2, Job: "B"})
	require.ErrorIs(t, err, goccl.ErrMismatch)
	require.ErrorContains(t, err, "other job")
	_, err = Join(ctx, root.ID(), Config{Rank: 1, Size: 2, Job: "B"})
	require.ErrorIs(t, err, goccl.ErrMismatch)

	// None of this disturbed the ranks.
	for _, err := range each(2, func(rank int) error {
		s, err := Join(ctx, root.ID(), Config{Rank: rank, Size: 2, Job: "A"})
		if err == nil {
			err = s.Close()
		}
		return err
	}) {
		require.NoError(t, err)
	}
}

// C10 over sockets: the second process of a rank is told who has it.
func TestC10DuplicateRank(t *testing.T) {
	ctx := testContext(t)
	root := openRoot(t, "tcp", RootOptions{Size: 3})
	serveRoot(ctx, t, root)
	require.Equal(t, wire.KindAccept, shakeKeep(t, root, 1))
	_, err := Join(ctx, root.ID(), Config{Rank: 1, Size: 3})
	require.ErrorIs(t, err, goccl.ErrInvalid)
	require.ErrorContains(t, err, "rank 1 is taken: it joined from host elsewhere, pid 77")
	require.ErrorContains(t, err, "now comes from host ")
}

// shakeKeep joins by hand and keeps the connection open until the test ends.
func shakeKeep(t *testing.T, root *Root, rank int) wire.Kind {
	t.Helper()
	c, err := net.Dial("tcp", rootAddr(t, root))
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	l := newLink(c)
	m, err := l.read(wire.MaxHello)
	require.NoError(t, err)
	id := root.ID()
	hello := wire.Hello{Job: id.job(), Rank: rank, Size: id.size(), PID: 77, Host: "elsewhere"}
	hello.MAC = signHello(id.secret(), m.(wire.Banner), hello.SignedBody())
	require.NoError(t, l.write(hello, time.Now().Add(watchdog)))
	answer, err := l.read(wire.MaxUp)
	require.NoError(t, err)
	return answer.Kind()
}

func TestC09RankOutsideTheWorld(t *testing.T) {
	root := openRoot(t, "tcp", RootOptions{Size: 2})
	ctx := testContext(t)
	_, err := Join(ctx, root.ID(), Config{Rank: 2, Size: 2})
	require.ErrorIs(t, err, goccl.ErrInvalid)
	require.ErrorContains(t, err, "rank 2 not below world 2")
	_, err = Join(ctx, root.ID(), Config{Rank: 2, Size: 3})
	require.ErrorIs(t, err, goccl.ErrMismatch)
	require.ErrorContains(t, err, "world size is 3, the root says 2")
}

// Silent, half-open and babbling clients neither delay the ranks nor pile up.
func TestJunkClientsDisturbNobody(t *testing.T) {
	ctx := testContext(t)
	root := openRoot(t, "tcp", RootOptions{Size: 2})
	serveRoot(ctx, t, root)
	addr := rootAddr(t, root)
	for i := range 100 { // more than the limit for clients that say nothing
		c, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		switch i % 3 {
		case 0:
			_, err = c.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
		case 1:
			_, err = c.Write(wire.Append(nil, wire.Hello{Rank: 1})[:11])
		}
		require.NoError(t, err)
	}
	for _, err := range each(2, func(rank int) error {
		s, err := Join(ctx, root.ID(), Config{Rank: rank, Size: 2})
		if err == nil {
			err = s.Close()
		}
		return err
	}) {
		require.NoError(t, err)
	}
}

func TestPendingDropsTheOldest(t *testing.T) {
	p := newPending(2)
	var far []net.Conn
	var near []*link
	for range 3 {
		a, b := net.Pipe()
		near, far = append(near, newLink(a)), append(far, b)
	}
	require.False(t, p.add(near[0]))
	require.False(t, p.add(near[1]))
	p.remove(near[0])
	require.False(t, p.add(near[2]))
	a, b := net.Pipe()
	require.True(t, p.add(newLink(a)))
	_, err := far[1].Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "the oldest of those that still wait")
	p.closeAll()
	for _, c := range []net.Conn{far[2], b} {
		_, err = c.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
	}
	c, d := net.Pipe()
	require.False(t, p.add(newLink(c)))
	_, err = d.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "nothing stays after closeAll")
	near[0].close()
}

// C35: each phase of the handshake is bounded on both sides.
func TestC35SilentPartners(t *testing.T) {
	t.Run("client", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			near, far := net.Pipe()
			go io.Copy(io.Discard, far)
			_, _, err := greet(newLink(near), mustID(t, 2), time.Now().Add(handshakeTime))
			require.Error(t, err)
			near.Close()
		})
	})
	t.Run("root without a banner", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			near, far := net.Pipe()
			_, err := knock(t.Context(), newLink(near), nil, wire.Hello{})
			require.ErrorContains(t, err, "read banner")
			far.Close()
		})
	})
	t.Run("root without an answer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			near, far := net.Pipe()
			go func() {
				_, _ = far.Write(wire.Append(nil, wire.Banner{}))
				_, _ = io.Copy(io.Discard, far)
			}()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := knock(ctx, newLink(near), nil, wire.Hello{})
			require.ErrorContains(t, err, "wait for the root's answer: no answer in time")
			near.Close()
		})
	})
}

// A root that cannot sign is not ours, whatever it says.
func TestImpostorRootIsNotBelieved(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	go func() {
		_, _ = far.Write(wire.Append(nil, wire.Banner{}))
		l := newLink(far)
		if _, err := l.read(wire.MaxHello); err == nil {
			_, _ = far.Write(wire.Append(nil, wire.Accept{}))
		}
	}()
	_, err := knock(testContext(t), newLink(near), mustID(t, 2).secret(), wire.Hello{Size: 2})
	require.ErrorContains(t, err, "does not know the secret")
	near.Close()
}
