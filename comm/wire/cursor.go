package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// noRank is -1 on the wire: "no rank in particular".
const noRank = math.MaxUint32

// cursor reads a body from the front. After the first error every read returns
// zero values, so decoders need no checks of their own.
type cursor struct {
	rest []byte
	err  error
}

func (c *cursor) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
		c.rest = nil
	}
}

func (c *cursor) take(n int) []byte {
	if c.err == nil && n > len(c.rest) {
		c.fail("%d bytes wanted, %d left", n, len(c.rest))
	}
	if c.err != nil {
		return nil
	}
	b := c.rest[:n:n]
	c.rest = c.rest[n:]
	return b
}

func (c *cursor) u8() uint8 {
	if b := c.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) u32() uint32 {
	if b := c.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (c *cursor) u64() uint64 {
	if b := c.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (c *cursor) nonce() (n [NonceSize]byte) { copy(n[:], c.take(NonceSize)); return n }
func (c *cursor) mac() (m [MACSize]byte)     { copy(m[:], c.take(MACSize)); return m }

func (c *cursor) rank() int {
	switch v := c.u32(); {
	case v == noRank:
		return -1
	case v > math.MaxInt32:
		c.fail("rank %d", v)
		return -1
	default:
		return int(v)
	}
}

func (c *cursor) bytes(limit int) []byte {
	n := c.u32()
	if uint64(n) > uint64(limit) {
		c.fail("field of %d bytes, at most %d are allowed", n, limit)
	}
	if n == 0 {
		return nil
	}
	return c.take(int(n))
}

func (c *cursor) text(limit int) string {
	b := c.bytes(limit)
	if !utf8.Valid(b) {
		c.fail("text is not UTF-8")
		return ""
	}
	return string(b)
}

// count reads the number of list items, each of at least width bytes: a count
// that the rest of the body cannot hold is refused before anything is allocated.
func (c *cursor) count(width int) int {
	n := c.u32()
	if uint64(n)*uint64(width) > uint64(len(c.rest)) {
		c.fail("list of %d items in %d bytes", n, len(c.rest))
		return 0
	}
	return int(n)
}

func (c *cursor) ranks() []int {
	n := c.count(4)
	if n == 0 {
		return nil
	}
	rs := make([]int, n)
	for i := range rs {
		rs[i] = c.rank()
	}
	return rs
}

func appendU32(b []byte, v uint32) []byte { return binary.LittleEndian.AppendUint32(b, v) }
func appendU64(b []byte, v uint64) []byte { return binary.LittleEndian.AppendUint64(b, v) }

func appendRank(b []byte, r int) []byte {
	if r < 0 {
		return appendU32(b, noRank)
	}
	return appendU32(b, uint32(r))
}

func appendRanks(b []byte, rs []int) []byte {
	b = appendU32(b, uint32(len(rs)))
	for _, r := range rs {
		b = appendRank(b, r)
	}
	return b
}

func appendBytes(b, data []byte) []byte {
	b = appendU32(b, uint32(len(data)))
	return append(b, data...)
}

// appendText writes s made fit for the wire: valid UTF-8, cut to limit bytes at a
// character. A failing rank's text must never be the reason that it is not heard.
func appendText(b []byte, s string, limit int) []byte {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) > limit {
		for limit > 0 && !utf8.RuneStart(s[limit]) {
			limit--
		}
		s = s[:limit]
	}
	b = appendU32(b, uint32(len(s)))
	return append(b, s...)
}
