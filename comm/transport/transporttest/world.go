// Package transporttest is the contract of transport.Transport as tests: one
// suite that every implementation passes.
package transporttest

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/internal/shmem"
)

// Watchdog bounds every wait of the suite.
const Watchdog = 60 * time.Second

// World is a set of ranks of this process, each with a transport of its own.
type World struct {
	Transports []transport.Transport
	Peers      []*transport.Peer
}

// NewWorld makes n ranks whose transports open returns; they are closed with t.
func NewWorld(t testing.TB, n int, open func(testing.TB) transport.Transport) *World {
	w := &World{}
	for rank := range n {
		tr := open(t)
		t.Cleanup(func() { require.NoError(t, tr.Close()) })
		w.Transports = append(w.Transports, tr)
		w.Peers = append(w.Peers, NewPeer(t, rank, tr))
	}
	return w
}

// NewPeer describes a rank of this process as a communicator would.
func NewPeer(t testing.TB, rank int, tr transport.Transport) *transport.Peer {
	p, err := describe(rank, tr)
	require.NoError(t, err)
	return p
}

func describe(rank int, tr transport.Transport) (*transport.Peer, error) {
	blob, err := tr.Announce()
	return &transport.Peer{Rank: rank, Host: "here", HostID: 77, PID: os.Getpid(), Process: 1000 + uint64(os.Getpid()),
		Shm: true, Blob: map[string][]byte{tr.Name(): blob}}, err
}

// Context ends with the watchdog or the test.
func Context(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), Watchdog)
	t.Cleanup(cancel)
	return ctx
}

// Link is a connection with both of its sides.
type Link struct {
	Conn     transport.Conn
	RecvSide transport.RecvSide
	SendSide transport.SendSide
	Recv     *transport.Recv
	Send     *transport.Send
}

// Spec is a small FIFO, odd in its number of slots.
var Spec = transport.FIFOSpec{Slots: 3, SlotBytes: 256}

// NewConn is a connection of the world's ranks src and dst.
func NewConn(channel, src, dst int, spec transport.FIFOSpec) transport.Conn {
	return transport.Conn{Channel: channel, Index: channel % 2, Proto: goccl.Simple, Src: src, Dst: dst, FIFO: spec}
}

// Connect makes both sides; Close them with Link.Close, or leave it to t.
func (w *World) Connect(t testing.TB, c transport.Conn) *Link {
	l := &Link{Conn: c}
	var err error
	ctx := Context(t)
	require.NoError(t, w.Transports[c.Src].CanConnect(w.Peers[c.Src], w.Peers[c.Dst]))
	l.RecvSide, err = w.Transports[c.Dst].SetupRecv(ctx, c, w.Peers[c.Src])
	require.NoError(t, err)
	l.SendSide, err = w.Transports[c.Src].ConnectSend(ctx, c, w.Peers[c.Dst], l.RecvSide.Handle())
	require.NoError(t, err)
	l.Recv, err = l.RecvSide.FIFO(ctx)
	require.NoError(t, err)
	l.Send = l.SendSide.FIFO()
	t.Cleanup(func() { l.Close(t) })
	return l
}

// Close closes both sides.
func (l *Link) Close(t testing.TB) {
	require.NoError(t, l.SendSide.Close())
	require.NoError(t, l.RecvSide.Close())
}

// Fill writes n bytes that depend on the connection, the step and the place.
func Fill(addr uintptr, n int, c transport.Conn, step uint64) {
	p := pattern(c, step)
	for b := payload(addr, n); len(b) > 0; {
		b = b[copy(b, p[:]):]
	}
}

// Same reports the first block of bytes that is not what Fill wrote, -1 when all
// are.
func Same(addr uintptr, n int, c transport.Conn, step uint64) int {
	p := pattern(c, step)
	b := payload(addr, n)
	for at := 0; at < n; at += len(p) {
		part := b[at:min(n, at+len(p))]
		if !bytes.Equal(part, p[:len(part)]) {
			return at
		}
	}
	return -1
}

func payload(addr uintptr, n int) []byte { return shmem.At(addr, n).Bytes() }

// pattern is what the payload of a step repeats: a prime number of bytes, so that
// no two places of a slot or a page hold the same.
func pattern(c transport.Conn, step uint64) (p [4093]byte) {
	seed := (step+1)*0x9e3779b97f4a7c15 + uint64(c.Channel)<<40 + uint64(c.Src)<<20
	for i := 0; i+8 <= len(p); i += 8 {
		seed = seed*6364136223846793005 + 1442695040888963407
		binary.LittleEndian.PutUint64(p[i:], seed^seed>>29)
	}
	return p
}

// length is the payload of a step: zero, full and odd ones among them.
func length(spec transport.FIFOSpec, step uint64) int {
	switch step % 5 {
	case 0:
		return spec.SlotBytes
	case 1:
		return 0
	}
	return int(step*37) % (spec.SlotBytes + 1)
}

// signature is that of a step.
func signature(step uint64) uint32 { return uint32(step*2654435761) | 1<<31 }
