package goccl

import (
	"errors"
	"fmt"
	"strings"
)

// The kinds of failure. Match them with errors.Is.
var (
	ErrTimeout     = errors.New("timed out")
	ErrPeerLost    = errors.New("peer lost")
	ErrMismatch    = errors.New("ranks disagree")
	ErrAborted     = errors.New("aborted")
	ErrClosed      = errors.New("closed")
	ErrUnsupported = errors.New("not supported")
	ErrInvalid     = errors.New("invalid argument")
)

// Error says which operation failed, where, and why. Rank, Peer and Channel are
// -1 where they do not apply; NewError sets them so. Err is a sentinel or wraps
// one.
type Error struct {
	Op        string // "allreduce", "connect", ...; empty when no operation was under way
	Group     string // group or communicator name
	Transport string // "shm", "inproc", "net/socket"
	PeerAddr  string // host and address or pid of the peer
	Seq       uint64 // sequence number in the group, from 1; 0: none
	Rank      int    // the rank that reports
	Peer      int    // the rank it speaks of
	Channel   int
	Missing   []int  // ranks that did not arrive
	Hint      string // what the reader can do about it
	Sentence  string // the whole message, for an error that came from another rank
	Err       error
}

// NewError returns an Error for op with the fields that do not apply set to -1.
func NewError(op string, err error) *Error {
	return &Error{Op: op, Rank: -1, Peer: -1, Channel: -1, Err: err}
}

// Error returns one line: who, what, why and what to do.
func (e *Error) Error() string {
	if e.Sentence != "" {
		return e.Sentence
	}
	var b strings.Builder
	b.WriteString("goccl: ")
	if e.Rank >= 0 {
		fmt.Fprintf(&b, "rank %d: ", e.Rank)
	}
	if e.Op != "" {
		b.WriteString(e.Op)
		if e.Seq > 0 {
			fmt.Fprintf(&b, " #%d", e.Seq)
		}
		if e.Group != "" {
			fmt.Fprintf(&b, " on group %q", e.Group)
		}
		b.WriteString(": ")
	}
	if e.Peer >= 0 {
		fmt.Fprintf(&b, "peer %d", e.Peer)
		if e.PeerAddr != "" {
			fmt.Fprintf(&b, " (%s)", e.PeerAddr)
		}
		b.WriteString(": ")
	}
	if e.Transport != "" {
		fmt.Fprintf(&b, "via %s: ", e.Transport)
	}
	if e.Channel >= 0 {
		fmt.Fprintf(&b, "channel %d: ", e.Channel)
	}
	if e.Err != nil {
		b.WriteString(e.Err.Error())
	} else {
		b.WriteString("failed")
	}
	if len(e.Missing) > 0 {
		fmt.Fprintf(&b, "; missing %s", Ranks(e.Missing))
	}
	if e.Hint != "" {
		b.WriteString("; ")
		b.WriteString(e.Hint)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Ranks writes a list of ranks for a message: "rank 3" or "ranks 1, 4, 5".
func Ranks(rs []int) string {
	if len(rs) == 1 {
		return fmt.Sprintf("rank %d", rs[0])
	}
	var b strings.Builder
	b.WriteString("ranks ")
	for i, r := range rs {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%d", r)
	}
	return b.String()
}
