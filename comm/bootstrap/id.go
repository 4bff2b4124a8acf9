package bootstrap

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/wire"
)

// UniqueID is all that a rank needs to find and trust the root: the root's
// addresses, a hash of the job id, the world size and a random secret. Hand it to
// the ranks by any means that outsiders cannot read; MarshalText makes it one
// word. Printing or logging it shows everything but the secret.
type UniqueID [128]byte

// Layout of a UniqueID. Unused address bytes are zero.
const (
	idLayout = 1 // version of this layout

	idFlags  = 5  // 1 byte: flagLocal
	idAddrs  = 6  // 1 byte: number of addresses
	idUsed   = 7  // 1 byte: bytes used by them
	idSum    = 8  // 4 bytes: CRC-32 of everything else
	idSize   = 12 // 4 bytes: world size
	idJob    = 16 // 8 bytes: job hash
	idSecret = 24 // 16 bytes
	idList   = 40 // the addresses

	flagLocal = 1
	secretLen = 16
)

const idMagic = "gccl"

// idPrefix makes a text that was cut or belongs to something else recognisable.
const idPrefix = "goccl1."

func newID(job string, size int, local bool) (UniqueID, error) {
	var id UniqueID
	copy(id[:], idMagic)
	id[4] = idLayout
	if local {
		id[idFlags] = flagLocal
	}
	binary.LittleEndian.PutUint32(id[idSize:], uint32(size))
	hash := jobHash(job)
	copy(id[idJob:], hash[:])
	if _, err := rand.Read(id[idSecret : idSecret+secretLen]); err != nil {
		return UniqueID{}, fmt.Errorf("random secret: %w", err)
	}
	id.seal()
	return id, nil
}

// jobHash maps a job id to the few bytes that tell jobs apart on one port. It is
// an identity, not a secret.
func jobHash(job string) (h [wire.JobSize]byte) {
	sum := sha256.Sum256([]byte("goccl job " + job))
	copy(h[:], sum[:])
	return h
}

// addEndpoint appends an address and reports whether it fitted.
func (id *UniqueID) addEndpoint(e endpoint) bool {
	var b []byte
	switch {
	case e.name != "":
		if len(e.name) > 63 {
			return false
		}
		b = append(b, 'n', byte(len(e.name)))
		b = append(b, e.name...)
	case e.addr.Is4():
		b = append(b, '4')
		b = append(b, e.addr.AsSlice()...)
	default:
		b = append(b, '6')
		b = append(b, e.addr.WithZone("").AsSlice()...)
	}
	b = binary.LittleEndian.AppendUint16(b, e.port)
	used := int(id[idUsed])
	if used+len(b) > len(id)-idList || id[idAddrs] == 255 {
		return false
	}
	copy(id[idList+used:], b)
	id[idUsed] += byte(len(b))
	id[idAddrs]++
	id.seal()
	return true
}

func (id *UniqueID) sum() uint32 {
	c := *id
	clear(c[idSum : idSum+4])
	return crc32.ChecksumIEEE(c[:])
}

func (id *UniqueID) seal() { binary.LittleEndian.PutUint32(id[idSum:], id.sum()) }

// check refuses ids that no root made.
func (id UniqueID) check() error {
	switch {
	case id == UniqueID{}:
		return errors.New("the unique id is zero: take it from Root.ID")
	case string(id[:4]) != idMagic:
		return errors.New("not a goccl unique id")
	case id[4] != idLayout:
		return fmt.Errorf("the unique id has layout %d, this release reads %d: use one goccl release on all ranks", id[4], idLayout)
	case binary.LittleEndian.Uint32(id[idSum:]) != id.sum():
		return errors.New("the unique id is damaged: it was cut or changed on its way")
	}
	return nil
}

func (id UniqueID) local() bool    { return id[idFlags]&flagLocal != 0 }
func (id UniqueID) size() int      { return int(binary.LittleEndian.Uint32(id[idSize:])) }
func (id UniqueID) secret() []byte { return id[idSecret : idSecret+secretLen] }

func (id UniqueID) job() (h [wire.JobSize]byte) {
	copy(h[:], id[idJob:])
	return h
}

// endpoints decodes the address list; a list that does not decode ends early.
func (id UniqueID) endpoints() []endpoint {
	rest := id[idList : idList+min(int(id[idUsed]), len(id)-idList)]
	var es []endpoint
	for range int(id[idAddrs]) {
		n := 0
		switch {
		case len(rest) < 2:
			return es
		case rest[0] == 'n':
			n = 2 + int(rest[1])
		case rest[0] == '4':
			n = 1 + 4
		case rest[0] == '6':
			n = 1 + 16
		}
		if n == 0 || len(rest) < n+2 {
			return es
		}
		e := endpoint{port: binary.LittleEndian.Uint16(rest[n:])}
		if rest[0] == 'n' {
			e.name = string(rest[2:n])
		} else {
			e.addr, _ = netip.AddrFromSlice(rest[1:n])
		}
		es = append(es, e)
		rest = rest[n+2:]
	}
	return es
}

// endpoint is one way to reach the root: an address or a host name.
type endpoint struct {
	addr netip.Addr
	name string
	port uint16
}

func (e endpoint) String() string {
	host := e.name
	if host == "" {
		host = e.addr.String()
	}
	return net.JoinHostPort(host, strconv.Itoa(int(e.port)))
}

// String describes the id for people: addresses, job hash and world size, never
// the secret.
func (id UniqueID) String() string {
	if err := id.check(); err != nil {
		return "unique id (" + err.Error() + ")"
	}
	var at []string
	for _, e := range id.endpoints() {
		at = append(at, e.String())
	}
	if id.local() || len(at) == 0 {
		at = []string{"in process"}
	}
	h := id.job()
	return fmt.Sprintf("unique id (root %s, job %s, world size %d)", strings.Join(at, " or "), hex.EncodeToString(h[:4]), id.size())
}

// GoString keeps the secret out of %#v.
func (id UniqueID) GoString() string { return id.String() }

// LogValue keeps the secret out of logs, whose handlers would otherwise call
// MarshalText.
func (id UniqueID) LogValue() slog.Value { return slog.StringValue(id.String()) }

// MarshalText returns the whole id, with its secret, as one word of letters,
// digits, '.', '-' and '_'.
func (id UniqueID) MarshalText() ([]byte, error) {
	if err := id.check(); err != nil {
		return nil, fmt.Errorf("%w: %v", goccl.ErrInvalid, err)
	}
	used := id[:idList+int(id[idUsed])]
	return []byte(idPrefix + base64.RawURLEncoding.EncodeToString(used)), nil
}

// UnmarshalText reads what MarshalText wrote. It refuses damaged ids.
func (id *UniqueID) UnmarshalText(text []byte) error {
	word, ok := strings.CutPrefix(string(text), idPrefix)
	if !ok {
		return fmt.Errorf("%w: a unique id begins with %q", goccl.ErrInvalid, idPrefix)
	}
	raw, err := base64.RawURLEncoding.DecodeString(word)
	if err != nil || len(raw) > len(id) || len(raw) < idList {
		return fmt.Errorf("%w: the unique id is damaged: it was cut or changed on its way", goccl.ErrInvalid)
	}
	var got UniqueID
	copy(got[:], raw)
	if err := got.check(); err != nil {
		return fmt.Errorf("%w: %v", goccl.ErrInvalid, err)
	}
	if idList+int(got[idUsed]) != len(raw) {
		return fmt.Errorf("%w: the unique id has %d bytes and says %d", goccl.ErrInvalid, len(raw), idList+int(got[idUsed]))
	}
	*id = got
	return nil
}
