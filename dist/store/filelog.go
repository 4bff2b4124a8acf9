package store

import (
	"encoding/binary"
	"hash/crc32"
)

// The file is a log: a header line, then records. A record is
//
//	u32 length of what follows | u32 CRC-32C of what follows | u8 kind | u32 key length | key | value
//
// in little-endian order. A writer that is killed leaves a record that is cut
// short or fails its sum; nothing after it can be good, because writers hold the
// lock, so the next writer cuts it off and readers wait at it.
const (
	fileHeader = "goccl file store 1\n"
	recordHead = 8 // length and sum
	recordMin  = 5 // kind and key length

	recordPut    = 1
	recordDelete = 2
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type record struct {
	kind byte
	key  string
	val  []byte // aliases the buffer it was read from
}

func appendRecord(b []byte, r record) []byte {
	start := len(b)
	b = append(b, make([]byte, recordHead)...)
	b = append(b, r.kind)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(r.key)))
	b = append(b, r.key...)
	b = append(b, r.val...)
	body := b[start+recordHead:]
	binary.LittleEndian.PutUint32(b[start:], uint32(len(body)))
	binary.LittleEndian.PutUint32(b[start+4:], crc32.Checksum(body, castagnoli))
	return b
}

// readRecord returns the first record of b and its length in the log; 0 means
// that b does not begin with a whole, good record.
func readRecord(b []byte) (record, int) {
	if len(b) < recordHead+recordMin {
		return record{}, 0
	}
	n := binary.LittleEndian.Uint32(b)
	if n < recordMin || n > recordMin+MaxKey+MaxValue || int(n) > len(b)-recordHead {
		return record{}, 0
	}
	body := b[recordHead : recordHead+int(n)]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(b[4:]) {
		return record{}, 0
	}
	keyLen := binary.LittleEndian.Uint32(body[1:])
	if body[0] != recordPut && body[0] != recordDelete || keyLen == 0 || keyLen > MaxKey || int(keyLen) > len(body)-recordMin {
		return record{}, 0
	}
	rest := body[recordMin:]
	return record{kind: body[0], key: string(rest[:keyLen]), val: rest[keyLen:]}, recordHead + int(n)
}
