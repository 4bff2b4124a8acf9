package bootstrap

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
)

func sampleID(t *testing.T) UniqueID {
	id, err := newID("the job", 8, false)
	require.NoError(t, err)
	for _, e := range sampleEndpoints() {
		require.True(t, id.addEndpoint(e), e.String())
	}
	return id
}

func sampleEndpoints() []endpoint {
	return []endpoint{
		{addr: netip.MustParseAddr("10.1.2.3"), port: 4000},
		{addr: netip.MustParseAddr("2001:db8::7"), port: 4001},
		{name: "node-0.train.svc", port: 65535},
	}
}

func TestUniqueIDTravelsAsText(t *testing.T) {
	id := sampleID(t)
	text, err := id.MarshalText()
	require.NoError(t, err)
	require.Regexp(t, `^goccl1\.[A-Za-z0-9_-]+$`, string(text))
	var got UniqueID
	require.NoError(t, got.UnmarshalText(text))
	require.Equal(t, id, got)
	require.Equal(t, sampleEndpoints(), got.endpoints())
	require.Equal(t, 8, got.size())
	require.Equal(t, jobHash("the job"), got.job())

	b, err := json.Marshal(map[string]UniqueID{"id": id})
	require.NoError(t, err)
	var m map[string]UniqueID
	require.NoError(t, json.Unmarshal(b, &m))
	require.Equal(t, id, m["id"])
}

func TestUniqueIDsDiffer(t *testing.T) {
	a, err := newID("j", 2, false)
	require.NoError(t, err)
	b, err := newID("j", 2, false)
	require.NoError(t, err)
	require.NotEqual(t, a.secret(), b.secret())
}

// Printing an id in any usual way must not give the secret away.
func TestUniqueIDKeepsItsSecret(t *testing.T) {
	id := sampleID(t)
	text, err := id.MarshalText()
	require.NoError(t, err)
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "id", id)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "id", id)
	secret := hex.EncodeToString(id.secret())
	for _, s := range []string{id.String(), fmt.Sprint(id), fmt.Sprintf("%v %+v %#v %s %q", id, id, id, id, id), log.String()} {
		require.NotContains(t, s, secret)
		require.NotContains(t, s, string(text))
		require.NotContains(t, s, fmt.Sprint(id.secret()))
		require.Contains(t, s, "10.1.2.3:4000 or [2001:db8::7]:4001 or node-0.train.svc:65535")
		require.Contains(t, s, "world size 8")
	}
}

func TestDamagedIDsAreRefused(t *testing.T) {
	text, err := sampleID(t).MarshalText()
	require.NoError(t, err)
	for name, bad := range map[string]string{
		"empty": "", "foreign": "hello", "cut": string(text[:len(text)-9]), "no body": idPrefix,
		"changed": string(text[:30]) + "AAAA" + string(text[34:]), "not base64": idPrefix + "!!!!",
		"longer": string(text) + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
	} {
		var id UniqueID
		require.ErrorIs(t, id.UnmarshalText([]byte(bad)), goccl.ErrInvalid, name)
		require.Zero(t, id, name)
	}
	_, err = UniqueID{}.MarshalText()
	require.ErrorIs(t, err, goccl.ErrInvalid)
	_, err = Join(t.Context(), UniqueID{}, Config{Size: 2})
	require.ErrorIs(t, err, goccl.ErrInvalid)
	require.ErrorContains(t, err, "unique id is zero")
}

func TestUniqueIDHoldsWhatFits(t *testing.T) {
	id, err := newID("", 2, false)
	require.NoError(t, err)
	n := 0
	for id.addEndpoint(endpoint{addr: netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}), port: 1}) {
		n++
	}
	require.Equal(t, 12, n)
	require.Len(t, id.endpoints(), n)
	require.NoError(t, id.check())
	require.False(t, id.addEndpoint(endpoint{name: "x", port: 1}))
}

func FuzzUniqueID(f *testing.F) {
	var t testing.T
	text, _ := sampleID(&t).MarshalText()
	f.Add(text, []byte{3})
	f.Fuzz(func(t *testing.T, text, raw []byte) {
		var id UniqueID
		if id.UnmarshalText(text) == nil {
			back, err := id.MarshalText()
			require.NoError(t, err)
			var again UniqueID
			require.NoError(t, again.UnmarshalText(back))
			require.Equal(t, id, again)
		}
		// Fields of an id that was built wrongly but sealed rightly.
		copy(id[:], idMagic)
		id[4] = idLayout
		copy(id[idFlags:], raw)
		id.seal()
		_ = id.String()
		require.LessOrEqual(t, len(id.endpoints()), 255)
	})
}
