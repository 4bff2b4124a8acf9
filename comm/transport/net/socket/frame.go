package socket

import (
	"net"

	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/internal/shmem"
)

// frame is a slot on its way into the socket.
type frame struct {
	header  [frameBytes]byte
	payload []byte
	sent    int         // bytes that have left already
	parts   net.Buffers // header and payload, what has not left of them
	list    [2][]byte   // memory of parts
}

// load begins the slot that is ready, or goes on with it when part of it has
// left.
func (f *frame) load(from *transport.Recv) {
	if f.sent == 0 {
		addr, n, sig := from.Peek()
		header{uint32(n), sig, from.Step()}.put(f.header[:])
		f.payload = shmem.At(addr, n).Bytes()
	}
	inHead := min(f.sent, frameBytes)
	f.list = [2][]byte{f.header[inHead:], f.payload[f.sent-inHead:]}
	f.parts = f.list[:]
}

// bytes returns how much has not left.
func (f *frame) bytes() int { return frameBytes + len(f.payload) - f.sent }

// writeTo writes the rest of the frame, and blocks as long as that takes.
func (f *frame) writeTo(socket net.Conn) error {
	_, err := f.parts.WriteTo(socket)
	f.sent = 0
	return err
}
