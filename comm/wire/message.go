package wire

import "fmt"

// Kind tells the messages apart. The values are part of the protocol.
type Kind uint8

// The kinds, in the order of the package documentation.
const (
	KindBanner Kind = iota + 1
	KindHello
	KindAccept
	KindRefuse
	KindRoster
	KindPing
	KindBye
	KindPut
	KindAll
	KindEnd
	KindExpire
	KindRelay
	KindQuery
	KindStatus
	KindFail
	KindEvent

	numKinds = iota + 1
)

var kindNames = [numKinds]string{"", "banner", "hello", "accept", "refuse", "roster", "ping", "bye",
	"put", "all", "end", "expire", "relay", "query", "status", "fail", "event"}

// Valid reports whether k is one of the constants.
func (k Kind) Valid() bool { return k > 0 && k < numKinds }

// String returns the lower-case name, for example "hello".
func (k Kind) String() string {
	if !k.Valid() {
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
	return kindNames[k]
}

// Message is one of the message structs of this package.
type Message interface {
	Kind() Kind
	appendBody(b []byte) []byte
}

// Decode decodes the body of a frame of kind k. Byte slices in the result point
// into body. Errors wrap ErrMalformed.
func Decode(k Kind, body []byte) (Message, error) {
	c := cursor{rest: body}
	m := decode(k, &c)
	if c.err == nil && len(c.rest) > 0 {
		c.fail("%d trailing bytes", len(c.rest))
	}
	if c.err != nil {
		return nil, fmt.Errorf("%w: %v: %v", ErrMalformed, k, c.err)
	}
	return m, nil
}

func decode(k Kind, c *cursor) Message {
	switch k {
	case KindBanner:
		return Banner{Nonce: c.nonce()}
	case KindHello:
		return decodeHello(c)
	case KindAccept:
		return Accept{MAC: c.mac(), HeartbeatMillis: c.u32()}
	case KindRefuse:
		return Refuse{Code: c.code(), Rank: c.rank(), Missing: c.ranks(), Text: c.text(MaxText)}
	case KindRoster:
		return decodeRoster(c)
	case KindPing:
		return Ping{}
	case KindBye:
		return Bye{}
	case KindPut:
		return Put{Seq: c.u64(), Op: c.op(), Data: c.bytes(MaxData)}
	case KindAll:
		return decodeAll(c)
	case KindEnd:
		return End{Seq: c.u64(), Code: c.code(), Rank: c.rank(), Missing: c.ranks(), Text: c.text(MaxText)}
	case KindExpire:
		return Expire{Seq: c.u64()}
	case KindRelay:
		return Relay{Rank: c.rank(), Tag: c.u64(), Data: c.bytes(MaxData)}
	case KindQuery:
		return Query{Rank: c.rank(), Token: c.u64()}
	case KindStatus:
		return Status{Rank: c.rank(), Token: c.u64(), Data: c.bytes(MaxData)}
	case KindFail:
		return Fail{Text: c.text(MaxText)}
	case KindEvent:
		return Event{What: c.eventKind(), Rank: c.rank(), Text: c.text(MaxText)}
	}
	c.fail("unknown kind")
	return nil
}
