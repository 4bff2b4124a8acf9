package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Version is the version of the protocol that this package speaks. Ranks of
// different versions refuse each other.
const Version = 1

// HeaderSize is the size of a frame header in bytes.
const HeaderSize = 8

// Limits in bytes. They bound what a peer can make the other side allocate.
const (
	MaxData = 1 << 20  // one relayed message, status or part of an all-gather
	MaxInfo = 64 << 10 // private information of one rank
	MaxText = 8 << 10  // a text for people
	MaxHost = 255      // a host name or address

	MaxHello = MaxInfo + MaxText + 1<<10 // body of a frame from a client not yet known
	MaxUp    = MaxData + 1<<10           // body of a frame from a rank to the root
	MaxDown  = 64 << 20                  // body of a frame from the root to a rank
)

const magic0, magic1 = 0x67, 0xc1

// ErrMagic says that the bytes are not a frame of this protocol at all.
var ErrMagic = errors.New("not a goccl frame")

// ErrMalformed says that a frame of this version cannot be decoded.
var ErrMalformed = errors.New("malformed frame")

// VersionError says that the other side speaks another version of the protocol.
type VersionError struct{ Got uint8 }

// Error names both versions and what to do.
func (e *VersionError) Error() string {
	return fmt.Sprintf("the other side speaks wire version %d, this side speaks %d: use one goccl release on all ranks", e.Got, Version)
}

// Header is the decoded head of a frame.
type Header struct {
	Kind Kind
	Size int // body length in bytes
}

// ParseHeader decodes the first HeaderSize bytes of b. The body may have at most
// limit bytes. Errors are ErrMagic, *VersionError or wrap ErrMalformed.
func ParseHeader(b []byte, limit int) (Header, error) {
	if len(b) < HeaderSize {
		return Header{}, fmt.Errorf("%w: header of %d bytes", ErrMalformed, len(b))
	}
	if b[0] != magic0 || b[1] != magic1 {
		return Header{}, fmt.Errorf("%w: it begins with %q", ErrMagic, b[:4])
	}
	if b[2] != Version {
		return Header{}, &VersionError{Got: b[2]}
	}
	k, n := Kind(b[3]), binary.LittleEndian.Uint32(b[4:])
	if !k.Valid() {
		return Header{}, fmt.Errorf("%w: unknown kind %d", ErrMalformed, uint8(k))
	}
	if uint64(n) > uint64(limit) {
		return Header{}, fmt.Errorf("%w: %v body of %d bytes, at most %d are allowed here", ErrMalformed, k, n, limit)
	}
	return Header{Kind: k, Size: int(n)}, nil
}

// Append appends the frame of m to b and returns the longer slice.
func Append(b []byte, m Message) []byte {
	start := len(b)
	b = append(b, magic0, magic1, Version, byte(m.Kind()), 0, 0, 0, 0)
	b = m.appendBody(b)
	binary.LittleEndian.PutUint32(b[start+4:], uint32(len(b)-start-HeaderSize))
	return b
}
