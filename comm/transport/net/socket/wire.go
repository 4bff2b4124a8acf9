package socket

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/transport"
)

// What passes on a connection, all little-endian:
//
//	sender                          receiver
//	hello   48 bytes        ->
//	                        <-      reply, 1 byte
//	frame   16 bytes + payload
//	...
//	goodbye 16 bytes        ->      and the end of the stream
//
// Nothing else comes back: TCP is the flow control.

type token [16]byte

const (
	helloMagic   = 0x31_6b63_6f73_6363_67 // "gccsock1", first letter lowest
	helloVersion = 1
	helloBytes   = 48
)

// hello is how a sender says which connection it is.
type hello struct {
	token token
	conn  transport.Conn
}

func (h hello) encode() []byte {
	b := make([]byte, 0, helloBytes)
	b = binary.LittleEndian.AppendUint64(b, helloMagic)
	b = binary.LittleEndian.AppendUint32(b, helloVersion)
	b = append(b, h.token[:]...)
	b = binary.LittleEndian.AppendUint32(b, uint32(h.conn.Channel))
	b = binary.LittleEndian.AppendUint32(b, uint32(h.conn.Index))
	b = binary.LittleEndian.AppendUint32(b, uint32(h.conn.Src))
	b = binary.LittleEndian.AppendUint32(b, uint32(h.conn.Dst))
	return binary.LittleEndian.AppendUint32(b, layout(h.conn))
}

// layout is a checksum of what else both sides must agree on.
func layout(c transport.Conn) uint32 {
	v := uint32(c.Proto)
	for _, x := range []int{c.FIFO.Slots, c.FIFO.SlotBytes} {
		v = v*1_000_003 + uint32(x)
	}
	if c.FIFO.Inline {
		v ^= 1 << 31
	}
	return v
}

// same reports how the greeting differs from the connection that its token names.
func (h greeting) same(c transport.Conn) error {
	if h.channel != uint32(c.Channel) || h.index != uint32(c.Index) || h.src != uint32(c.Src) || h.dst != uint32(c.Dst) {
		return fmt.Errorf("%w: the sender says channel %d/%d : %d -> %d", goccl.ErrMismatch, h.channel, h.index, h.src, h.dst)
	}
	if h.layout != layout(c) {
		return fmt.Errorf("%w: protocol or FIFO of %s differ on the two ranks", goccl.ErrMismatch, c)
	}
	return nil
}

// greeting is a hello as the receiver reads it.
type greeting struct {
	token                            token
	channel, index, src, dst, layout uint32
}

var errMagic = errors.New("not a sender of this library")

func decodeHello(b []byte) (greeting, error) {
	var g greeting
	if len(b) != helloBytes || binary.LittleEndian.Uint64(b) != helloMagic {
		return g, errMagic
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != helloVersion {
		return g, fmt.Errorf("version %d of the socket transport, want %d", v, helloVersion)
	}
	copy(g.token[:], b[12:])
	for i, f := range []*uint32{&g.channel, &g.index, &g.src, &g.dst, &g.layout} {
		*f = binary.LittleEndian.Uint32(b[28+4*i:])
	}
	return g, nil
}

// The reply to a hello.
const (
	replyWelcome  = 1
	replyUnknown  = 2
	replyMismatch = 3
)

func replyError(reply byte) error {
	switch reply {
	case replyWelcome:
		return nil
	case replyUnknown:
		return fmt.Errorf("%w: the peer does not wait for this connection: it has closed it, or is of another job", goccl.ErrPeerLost)
	case replyMismatch:
		return fmt.Errorf("%w: the peer set this connection up differently", goccl.ErrMismatch)
	}
	return fmt.Errorf("%w: reply %d to the handshake", goccl.ErrInvalid, reply)
}

const (
	frameBytes = 16
	goodbye    = 1<<32 - 1 // length of the last frame
)

// header is in front of every payload.
type header struct {
	length uint32
	sig    uint32
	step   uint64
}

func (h header) put(b []byte) {
	binary.LittleEndian.PutUint32(b, h.length)
	binary.LittleEndian.PutUint32(b[4:], h.sig)
	binary.LittleEndian.PutUint64(b[8:], h.step)
}

func readHeader(b []byte) header {
	return header{binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint64(b[8:])}
}

// check reports a frame that is not the one of the step.
func (h header) check(step uint64, slotBytes int) error {
	if h.step != step {
		return fmt.Errorf("%w: frame of step %d where step %d is due", goccl.ErrMismatch, h.step, step)
	}
	if h.length != goodbye && h.length > uint32(slotBytes) {
		return fmt.Errorf("%w: frame of %d bytes for a slot of %d", goccl.ErrMismatch, h.length, slotBytes)
	}
	return nil
}

// Addresses travel as counted strings.
const (
	maxAddrs   = 64
	maxAddrLen = 255
)

func encodeAddrs(addrs []string) []byte {
	b := []byte{byte(min(len(addrs), maxAddrs))}
	for _, a := range addrs[:min(len(addrs), maxAddrs)] {
		a = a[:min(len(a), maxAddrLen)]
		b = append(append(b, byte(len(a))), a...)
	}
	return b
}

func decodeAddrs(b []byte) ([]string, error) {
	bad := fmt.Errorf("%w: list of addresses of %d bytes", goccl.ErrInvalid, len(b))
	if len(b) == 0 || b[0] > maxAddrs {
		return nil, bad
	}
	n, b := int(b[0]), b[1:]
	var addrs []string
	for range n {
		if len(b) == 0 || len(b) < 1+int(b[0]) {
			return nil, bad
		}
		a := string(b[1 : 1+int(b[0])])
		if host, port, err := net.SplitHostPort(a); err != nil || host == "" || port == "" {
			return nil, fmt.Errorf("%w: address %q", goccl.ErrInvalid, a)
		}
		addrs = append(addrs, a)
		b = b[1+len(a):]
	}
	if len(b) > 0 {
		return nil, bad
	}
	return addrs, nil
}
