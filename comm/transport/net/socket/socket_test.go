package socket

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/comm/transport/transporttest"
	"github.com/goccl/goccl/internal/leak"
	"github.com/goccl/goccl/internal/spin"
)

func open(t testing.TB) transport.Transport {
	tr, err := New(Config{})
	require.NoError(t, err)
	return tr
}

func TestContract(t *testing.T) { transporttest.Run(t, transporttest.Traits{}, open) }

// Ranks of one host with nothing but the network between them exchange large
// messages in both directions at once.
func TestC53OneHostByNetworkOnly(t *testing.T) {
	leak.VerifyNone(t)
	w := transporttest.NewWorld(t, 2, open)
	spec := transport.FIFOSpec{Slots: 2, SlotBytes: 512 << 10}
	ctx := transporttest.Context(t)
	ended := make(chan error, 2)
	for src := range 2 {
		l := w.Connect(t, transporttest.NewConn(0, src, 1-src, spec))
		go func() { ended <- l.Pass(ctx, 20) }()
	}
	require.NoError(t, <-ended)
	require.NoError(t, <-ended)
}

func TestC31PortRange(t *testing.T) {
	leak.VerifyNone(t)
	first, err := New(Config{})
	require.NoError(t, err)
	defer first.Close()
	port := first.listener.Addr().(*net.TCPAddr).Port
	_, err = New(Config{PortRange: [2]int{port, port}})
	require.ErrorContains(t, err, fmt.Sprintf("no port of the range %d-%d can be had", port, port))
	_, err = New(Config{Addr: first.Addrs()[0]})
	require.ErrorContains(t, err, first.Addrs()[0])
	for _, bad := range [][2]int{{5, 4}, {0, 9}, {9, 0}, {-1, 3}, {1, 70000}} {
		_, err := New(Config{PortRange: bad})
		require.ErrorIs(t, err, goccl.ErrInvalid, "%v", bad)
	}
}

// Clients that say nothing or nonsense hold up nobody and leave nothing.
func TestC16JunkAndSilentClients(t *testing.T) {
	leak.VerifyNone(t)
	var text lockedBuffer
	receiver, err := New(Config{Logger: slog.New(slog.NewTextHandler(&text, nil))})
	require.NoError(t, err)
	w := &transporttest.World{Transports: []transport.Transport{open(t), receiver}}
	defer w.Transports[0].Close()
	defer receiver.Close()
	for rank, tr := range w.Transports {
		w.Peers = append(w.Peers, transporttest.NewPeer(t, rank, tr))
	}
	var clients []net.Conn
	for i := range 30 {
		conn, err := net.Dial("tcp", receiver.Addrs()[0])
		require.NoError(t, err)
		defer conn.Close()
		clients = append(clients, conn)
		switch i % 3 {
		case 0: // silent
		case 1:
			_, err = conn.Write([]byte("GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: someone else\r\n\r\n"))
		case 2: // another job's sender
			_, err = conn.Write(hello{token: token{1, byte(i)}, conn: transporttest.NewConn(0, 0, 1, transporttest.Spec)}.encode())
		}
		require.NoError(t, err)
	}
	l := w.Connect(t, transporttest.NewConn(0, 0, 1, transporttest.Spec))
	require.NoError(t, l.Pass(transporttest.Context(t), 50))
	for i, conn := range clients {
		if i%3 == 0 {
			continue
		}
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(transporttest.Watchdog)))
		answer, _ := io.ReadAll(conn) // ends when the transport closes the connection
		if i%3 == 2 {
			require.Equal(t, []byte{replyUnknown}, answer)
		}
	}
	require.Eventually(t, func() bool {
		return strings.Count(text.String(), errMagic.Error()) == 10 && strings.Count(text.String(), "another job") == 10
	}, transporttest.Watchdog, time.Millisecond, text.String())
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestC35SilentClientIsBounded(t *testing.T) {
	leak.VerifyNone(t)
	tr, err := New(Config{HandshakeTimeout: time.Millisecond})
	require.NoError(t, err)
	defer tr.Close()
	conn, err := net.Dial("tcp", tr.Addrs()[0])
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(transporttest.Watchdog)))
	_, err = conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}

// A peer that accepts and never answers, and one that never listens.
func TestC35EachPhaseIsBounded(t *testing.T) {
	leak.VerifyNone(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	defer silent.Close()
	for name, addr := range map[string]string{"silent": silent.Addr().String(), "gone": gone.Addr().String()} {
		t.Run(name, func(t *testing.T) {
			tr, err := New(Config{HandshakeTimeout: 20 * time.Millisecond})
			require.NoError(t, err)
			defer tr.Close()
			to := &transport.Peer{Rank: 1, Host: "there", Addrs: []string{addr}}
			c := transporttest.NewConn(2, 0, 1, transporttest.Spec)
			_, err = tr.ConnectSend(context.Background(), c, to, make([]byte, 16))
			require.ErrorIs(t, err, goccl.ErrTimeout)
			require.ErrorContains(t, err, addr)
			require.ErrorContains(t, err, "peer 1 (there")
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_, err = tr.ConnectSend(ctx, c, to, make([]byte, 16))
			require.ErrorIs(t, err, context.Canceled)
		})
	}
}

func TestMismatchedSetup(t *testing.T) {
	leak.VerifyNone(t)
	w := transporttest.NewWorld(t, 2, open)
	ctx := transporttest.Context(t)
	c := transporttest.NewConn(0, 0, 1, transporttest.Spec)
	side, err := w.Transports[1].SetupRecv(ctx, c, w.Peers[0])
	require.NoError(t, err)
	defer side.Close()
	other := c
	other.FIFO.Slots++
	_, err = w.Transports[0].ConnectSend(ctx, other, w.Peers[1], side.Handle())
	require.ErrorIs(t, err, goccl.ErrMismatch)
	other = c
	other.Channel++
	_, err = w.Transports[0].ConnectSend(ctx, other, w.Peers[1], side.Handle())
	require.ErrorIs(t, err, goccl.ErrMismatch)
	// Both were told; the right sender still comes through.
	require.Eventually(t, func() bool {
		good, err := w.Transports[0].ConnectSend(ctx, c, w.Peers[1], side.Handle())
		return err == nil && good.Close() == nil
	}, transporttest.Watchdog, time.Millisecond)
}

// A stalled receiver bounds Close, which says that data is left.
func TestC36CloseIsBounded(t *testing.T) {
	leak.VerifyNone(t)
	w := transporttest.NewWorld(t, 2, func(t testing.TB) transport.Transport {
		tr, err := New(Config{CloseTimeout: 10 * time.Millisecond})
		require.NoError(t, err)
		return tr
	})
	spec := transport.FIFOSpec{Slots: 2, SlotBytes: 16 << 20}
	l := w.Connect(t, transporttest.NewConn(0, 0, 1, spec))
	for range 4 { // two fill the other FIFO, the kernel holds part of the third
		require.Eventually(t, l.Send.Ready, transporttest.Watchdog, time.Millisecond)
		l.Send.Post(spec.SlotBytes, 1)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	require.ErrorIs(t, l.SendSide.Flush(ctx), goccl.ErrTimeout)
	require.ErrorIs(t, l.SendSide.Close(), goccl.ErrTimeout)
	require.NoError(t, l.SendSide.Close())
}

func TestCanConnect(t *testing.T) {
	tr := open(t).(*Transport)
	defer tr.Close()
	src, dst := &transport.Peer{Rank: 0, HostID: 1}, &transport.Peer{Rank: 1, HostID: 1, Addrs: []string{"127.0.0.1:5"}}
	require.NoError(t, tr.CanConnect(src, dst))
	dst.HostID = 2
	require.ErrorContains(t, tr.CanConnect(src, dst), "listens on loopback only")
	dst.Addrs = append(dst.Addrs, "10.0.0.9:5")
	require.NoError(t, tr.CanConnect(src, dst))
	dst.Addrs = nil
	require.ErrorContains(t, tr.CanConnect(src, dst), "rank 1 announced no address")
	dst.Blob = map[string][]byte{name: {9}}
	require.ErrorIs(t, tr.CanConnect(src, dst), goccl.ErrInvalid)
}

// A message costs no memory on the way.
func TestFramesDoNotAllocate(t *testing.T) {
	w := transporttest.NewWorld(t, 2, open)
	l := w.Connect(t, transporttest.NewConn(0, 0, 1, transporttest.Spec))
	pass := func() {
		l.Send.Post(8, 1)
		for !l.Recv.Ready() {
			time.Sleep(time.Microsecond)
		}
		l.Recv.Release()
	}
	pass()
	require.Less(t, testing.AllocsPerRun(200, pass), 1.0)
}

func BenchmarkPingPong(b *testing.B) {
	transporttest.PingPongLocal(b, transporttest.NewWorld(b, 2, open), spin.Policy{Network: true})
}
