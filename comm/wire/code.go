package wire

import "fmt"

// Code is the reason in a Refuse or End.
type Code uint8

// The reasons.
const (
	CodeVersion   Code = iota + 1 // another wire version
	CodeJob                       // another job's root
	CodeSecret                    // the signature is wrong
	CodeRange                     // rank not below the world size
	CodeSize                      // world sizes differ
	CodeDuplicate                 // the rank has joined already
	CodeTimeout                   // some ranks did not come in time
	CodeFailed                    // a rank gave up
	CodeLost                      // a rank's process or connection is gone
	CodeLeft                      // a rank left normally
	CodeMismatch                  // ranks called different collectives
	CodeTooLarge                  // the result does not fit a frame
	CodeClosed                    // the root was closed
	CodeMalformed                 // a frame could not be decoded

	numCodes = iota + 1
)

var codeNames = [numCodes]string{"", "version", "job", "secret", "range", "size", "duplicate", "timeout",
	"failed", "lost", "left", "mismatch", "too-large", "closed", "malformed"}

// Valid reports whether c is one of the constants.
func (c Code) Valid() bool { return c > 0 && c < numCodes }

// String returns the lower-case name, for example "duplicate".
func (c Code) String() string {
	if !c.Valid() {
		return fmt.Sprintf("code(%d)", uint8(c))
	}
	return codeNames[c]
}

// Op tells which collective a Put belongs to.
type Op uint8

// The collectives of the control plane.
const (
	OpAllGather Op = iota + 1
	OpBarrier
	OpMonitoredBarrier

	numOps = iota + 1
)

var opNames = [numOps]string{"", "all-gather", "barrier", "monitored barrier"}

// Valid reports whether o is one of the constants.
func (o Op) Valid() bool { return o > 0 && o < numOps }

// String returns the name, for example "all-gather".
func (o Op) String() string {
	if !o.Valid() {
		return fmt.Sprintf("op(%d)", uint8(o))
	}
	return opNames[o]
}

// EventKind says what happened to a rank.
type EventKind uint8

// The events.
const (
	EventLost   EventKind = iota + 1 // its process or connection is gone without a goodbye
	EventFailed                      // it gave up and said why
	EventLeft                        // it left normally

	numEvents = iota + 1
)

var eventNames = [numEvents]string{"", "lost", "failed", "left"}

// Valid reports whether k is one of the constants.
func (k EventKind) Valid() bool { return k > 0 && k < numEvents }

// String returns the lower-case name, for example "lost".
func (k EventKind) String() string {
	if !k.Valid() {
		return fmt.Sprintf("event(%d)", uint8(k))
	}
	return eventNames[k]
}

func (c *cursor) code() Code {
	v := Code(c.u8())
	if !v.Valid() {
		c.fail("unknown code %d", uint8(v))
	}
	return v
}

func (c *cursor) op() Op {
	v := Op(c.u8())
	if !v.Valid() {
		c.fail("unknown operation %d", uint8(v))
	}
	return v
}

func (c *cursor) eventKind() EventKind {
	v := EventKind(c.u8())
	if !v.Valid() {
		c.fail("unknown event %d", uint8(v))
	}
	return v
}
