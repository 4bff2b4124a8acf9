package wire

import (
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

func samples() []Message {
	var nonce [NonceSize]byte
	var mac [MACSize]byte
	for i := range nonce {
		nonce[i] = byte(i + 1)
	}
	for i := range mac {
		mac[i] = byte(0xa0 + i)
	}
	return []Message{
		Banner{Nonce: nonce},
		Hello{Job: [JobSize]byte{1, 2, 3, 4, 5, 6, 7, 8}, Rank: 3, Size: 4, PID: 4711, Host: "node-a", Nonce: nonce,
			Failure: "out of memory", Info: []byte{9, 8, 7}, MAC: mac},
		Accept{MAC: mac, HeartbeatMillis: 5000},
		Refuse{Code: CodeTimeout, Rank: -1, Missing: []int{1, 5}, Text: "late"},
		Roster{Members: []Member{{PID: 7, Host: "a", Addr: "10.0.0.1:5", Info: []byte("x")}, {PID: 8, Host: "b"}}},
		Ping{},
		Bye{},
		Put{Seq: 1, Op: OpAllGather, Data: []byte("part")},
		All{Seq: 1, Parts: [][]byte{[]byte("p0"), nil, []byte("p2")}},
		End{Seq: 2, Code: CodeLost, Rank: 2, Missing: []int{2}, Text: "gone"},
		Expire{Seq: 9},
		Relay{Rank: 1, Tag: 1 << 40, Data: []byte("hi")},
		Query{Rank: -1, Token: 6},
		Status{Rank: 0, Token: 6, Data: []byte("fine")},
		Fail{Text: "boom"},
		Event{What: EventFailed, Rank: 2, Text: "boom"},
	}
}

func roundTrip(t *testing.T, frame []byte) Message {
	t.Helper()
	h, err := ParseHeader(frame, MaxDown)
	require.NoError(t, err)
	require.Len(t, frame, HeaderSize+h.Size)
	m, err := Decode(h.Kind, frame[HeaderSize:])
	require.NoError(t, err)
	return m
}

func TestEveryMessageSurvivesTheWire(t *testing.T) {
	seen := map[Kind]bool{}
	for _, m := range samples() {
		seen[m.Kind()] = true
		require.Equal(t, m, roundTrip(t, Append(nil, m)), "%v", m.Kind())
	}
	for k := Kind(1); k.Valid(); k++ {
		require.True(t, seen[k], "no sample of %v", k)
	}
}

// The bytes are a contract between releases: a difference here needs a new Version.
func TestGoldenFrames(t *testing.T) {
	var b strings.Builder
	for _, m := range samples() {
		fmt.Fprintf(&b, "%v %s\n", m.Kind(), hex.EncodeToString(Append(nil, m)))
	}
	path := filepath.Join("testdata", "frames.txt")
	if *rewrite {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String())
}

func TestTruncatedAndPaddedBodiesAreRefused(t *testing.T) {
	for _, m := range samples() {
		body := Append(nil, m)[HeaderSize:]
		for n := range len(body) {
			_, err := Decode(m.Kind(), body[:n])
			require.ErrorIs(t, err, ErrMalformed, "%v cut to %d bytes", m.Kind(), n)
		}
		_, err := Decode(m.Kind(), append(body, 0))
		require.ErrorIs(t, err, ErrMalformed, "%v with a byte too many", m.Kind())
	}
}

func TestHeaderRefusals(t *testing.T) {
	good := Append(nil, Expire{Seq: 1})
	edit := func(i int, v byte) []byte { b := append([]byte(nil), good...); b[i] = v; return b }

	_, err := ParseHeader([]byte("GET / HTTP/1.1\r\n"), MaxHello)
	require.ErrorIs(t, err, ErrMagic)
	require.ErrorContains(t, err, `"GET "`)

	var ve *VersionError
	_, err = ParseHeader(edit(2, Version+1), MaxHello)
	require.ErrorAs(t, err, &ve)
	require.EqualValues(t, Version+1, ve.Got)

	for name, b := range map[string][]byte{"short": good[:5], "kind 0": edit(3, 0), "kind 200": edit(3, 200), "length": edit(7, 1)} {
		_, err = ParseHeader(b, MaxHello)
		require.ErrorIs(t, err, ErrMalformed, name)
	}
	_, err = ParseHeader(good, 7)
	require.ErrorIs(t, err, ErrMalformed, "body of 8 bytes above a limit of 7")
}

func TestHugeCountsAllocateNothing(t *testing.T) {
	body := append(make([]byte, 8), 0xff, 0xff, 0xff, 0x7f)
	_, err := Decode(KindAll, body)
	require.ErrorIs(t, err, ErrMalformed)
	_, err = Decode(KindRoster, body[8:])
	require.ErrorIs(t, err, ErrMalformed)
}

func TestTextsAreMadeFit(t *testing.T) {
	long := strings.Repeat("ä", MaxText)
	got := roundTrip(t, Append(nil, Fail{Text: "x" + long})).(Fail)
	require.Len(t, got.Text, MaxText-1, "cut at a character, not inside one")
	require.True(t, utf8.ValidString(got.Text))

	got = roundTrip(t, Append(nil, Fail{Text: "a\xffb"})).(Fail)
	require.Equal(t, "a\uFFFDb", got.Text)

	_, err := Decode(KindFail, appendBytes(nil, []byte{0xff}))
	require.ErrorIs(t, err, ErrMalformed)
}

func TestSignedCoversAllButTheMAC(t *testing.T) {
	h := samples()[1].(Hello)
	body := Append(nil, h)[HeaderSize:]
	require.Equal(t, body[:len(body)-MACSize], h.SignedBody())
	require.Equal(t, h.SignedBody(), Signed(body))
	require.Empty(t, Signed(body[:MACSize-1]))
}

func TestAllSizeIsExact(t *testing.T) {
	m := All{Seq: 3, Parts: [][]byte{make([]byte, 5), nil, make([]byte, 70)}}
	require.Len(t, Append(nil, m), HeaderSize+AllSize(3, 75))
}

func TestNames(t *testing.T) {
	require.Equal(t, "hello", KindHello.String())
	require.Equal(t, "kind(99)", Kind(99).String())
	require.Equal(t, "malformed", CodeMalformed.String())
	require.Equal(t, "code(0)", Code(0).String())
	require.Equal(t, "monitored barrier", OpMonitoredBarrier.String())
	require.Equal(t, "op(9)", Op(9).String())
	require.Equal(t, "left", EventLeft.String())
	require.Equal(t, "event(7)", EventKind(7).String())
}

func FuzzDecode(f *testing.F) {
	for _, m := range samples() {
		f.Add(Append(nil, m))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		h, err := ParseHeader(frame, MaxUp)
		if err != nil || h.Size > len(frame)-HeaderSize {
			return
		}
		frame = frame[:HeaderSize+h.Size]
		m, err := Decode(h.Kind, frame[HeaderSize:])
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			return
		}
		require.Equal(t, frame, Append(nil, m), "one message, one encoding")
	})
}
