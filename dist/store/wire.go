package store

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/goccl/goccl"
)

// The protocol between a TCP server and its clients. All integers are
// little-endian. A client opens with a hello and the server answers with a
// welcome; then both send frames: u32 length of what follows, u32 id, u8 code,
// body. A reply has the id of its request, and requests may be answered in any
// order, as a get waits. Ids start at 1; id 0 is the server speaking by itself.
//
// A hello begins with 'G', so that a server can tell it from PyTorch's
// TCPStore, whose clients begin with a zero byte.
const (
	helloMagic   = "GCS"
	helloVersion = 1
	maxName      = 256 // bytes of a job id or a client's name

	frameHead = 5 // id and code
	maxFrame  = frameHead + 8 + MaxKey + 2*MaxValue
)

// Request codes.
const (
	opSet    = 1 // u32 key length, key, value
	opGet    = 2 // key
	opAdd    = 3 // i64 delta, key
	opCAS    = 4 // u32 key length, key, u32 old length, old, value
	opDelete = 5 // key
	opCancel = 6 // nothing; the id is that of the get to give up, no reply
	opBye    = 7 // nothing; the client will send no more
)

// Reply codes.
const (
	replyOK      = 0 // get: value; add: i64; cas: u8 swapped, u8 present, value; delete: u8
	replyRefused = 1 // text
	replyClosing = 2 // id 0: the server ends
)

type request struct {
	id   uint32
	op   byte
	key  string
	num  int64  // add
	old  []byte // cas
	body []byte // set, cas: value
}

// appendRequest appends the whole frame of r.
func appendRequest(b []byte, r request) []byte {
	start := len(b)
	b = append(b, 0, 0, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, r.id)
	b = append(b, r.op)
	switch r.op {
	case opSet, opCAS:
		b = binary.LittleEndian.AppendUint32(b, uint32(len(r.key)))
		b = append(b, r.key...)
		if r.op == opCAS {
			b = binary.LittleEndian.AppendUint32(b, uint32(len(r.old)))
			b = append(b, r.old...)
		}
		b = append(b, r.body...)
	case opAdd:
		b = binary.LittleEndian.AppendUint64(b, uint64(r.num))
		b = append(b, r.key...)
	default:
		b = append(b, r.key...)
	}
	binary.LittleEndian.PutUint32(b[start:], uint32(len(b)-start-4))
	return b
}

// parseRequest reads a frame without its length. old and body alias b.
func parseRequest(b []byte) (request, error) {
	if len(b) < frameHead {
		return request{}, refusal("a request is cut short")
	}
	r := request{id: binary.LittleEndian.Uint32(b), op: b[4]}
	b = b[frameHead:]
	switch r.op {
	case opSet, opCAS:
		key, rest, ok := cutField(b)
		if ok && r.op == opCAS {
			r.old, rest, ok = cutField(rest)
		}
		if !ok {
			return r, refusal("a length in a request is wrong")
		}
		r.key, r.body = string(key), rest
	case opAdd:
		if len(b) < 8 {
			return r, refusal("a request is cut short")
		}
		r.num, r.key = int64(binary.LittleEndian.Uint64(b)), string(b[8:])
	case opGet, opDelete:
		r.key = string(b)
	case opCancel, opBye:
		if len(b) != 0 {
			return r, refusal("a request is too long")
		}
		return r, nil
	default:
		return r, refusal(fmt.Sprintf("request code %d is unknown", r.op))
	}
	for _, err := range [...]error{checkKey(r.key), checkValue(r.old), checkValue(r.body)} {
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

// cutField splits off bytes that follow their u32 length.
func cutField(b []byte) (field, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, nil, false
	}
	n := binary.LittleEndian.Uint32(b)
	if b = b[4:]; uint64(n) > uint64(len(b)) {
		return nil, nil, false
	}
	return b[:n], b[n:], true
}

// replyFrame returns the head of a reply, to be followed by val.
func replyFrame(id uint32, code byte, fixed []byte, val []byte) []byte {
	b := make([]byte, 0, 4+frameHead+len(fixed))
	b = binary.LittleEndian.AppendUint32(b, uint32(frameHead+len(fixed)+len(val)))
	b = binary.LittleEndian.AppendUint32(b, id)
	b = append(b, code)
	return append(b, fixed...)
}

// parseReply reads a frame without its length. body aliases b.
func parseReply(b []byte) (id uint32, code byte, body []byte, err error) {
	if len(b) < frameHead {
		return 0, 0, nil, refusal("a reply is cut short")
	}
	return binary.LittleEndian.Uint32(b), b[4], b[frameHead:], nil
}

// parseSwap reads the body of the reply to a compare-and-swap.
func parseSwap(b []byte) (cur []byte, swapped bool, err error) {
	if len(b) < 2 {
		return nil, false, refusal("a reply is cut short")
	}
	if b[1] != 0 {
		cur = b[2:]
	}
	return cur, b[0] != 0, nil
}

// readFrame reads one frame without its length. Memory is taken as bytes
// arrive, so that a length alone costs nothing.
func readFrame(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := int(binary.LittleEndian.Uint32(head[:]))
	if n < frameHead || n > maxFrame {
		return nil, refusal(fmt.Sprintf("a frame claims %d bytes, the limit is %d", n, maxFrame))
	}
	const step = 64 << 10
	var b []byte
	for len(b) < n {
		have := len(b)
		b = append(b, make([]byte, min(n-have, max(step, have)))...)
		if _, err := io.ReadFull(r, b[have:]); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return b, nil
}

// hello is what a client says first.
type hello struct {
	job  string
	name string
}

func appendHello(b []byte, h hello) []byte {
	b = append(b, helloMagic...)
	b = append(b, helloVersion)
	for _, s := range [...]string{h.job, h.name} {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(s)))
		b = append(b, s...)
	}
	return b
}

// readHello reads no byte beyond the hello. An error that is a refusal has a
// text for the client; others are from strangers, who get no answer.
func readHello(r io.Reader) (hello, error) {
	var head [len(helloMagic) + 1]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return hello{}, err
	}
	if string(head[:len(helloMagic)]) != helloMagic {
		return hello{}, fmt.Errorf("%w: it began with % x and is not a goccl client", goccl.ErrUnsupported, head)
	}
	if v := head[len(helloMagic)]; v != helloVersion {
		return hello{}, refusal(fmt.Sprintf("the client speaks version %d of the store protocol, this server %d: use the same goccl on all ranks", v, helloVersion))
	}
	var h hello
	for _, to := range [...]*string{&h.job, &h.name} {
		s, err := readText(r)
		if err != nil {
			return hello{}, err
		}
		*to = s
	}
	return h, nil
}

// A welcome is u8 code (replyOK or replyRefused) and a text.
func appendWelcome(b []byte, code byte, text string) []byte {
	text = text[:min(len(text), maxName)]
	b = append(b, code)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(text)))
	return append(b, text...)
}

func readWelcome(r io.Reader) (code byte, text string, err error) {
	var head [1]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, "", err
	}
	text, err = readText(r)
	return head[0], text, err
}

// readText reads a u16 length and that many bytes, at most maxName.
func readText(r io.Reader) (string, error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return "", err
	}
	n := binary.LittleEndian.Uint16(head[:])
	if n > maxName {
		return "", refusal(fmt.Sprintf("a name has %d bytes, the limit is %d", n, maxName))
	}
	b := make([]byte, n)
	_, err := io.ReadFull(r, b)
	return string(b), err
}
