package store

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
)

// The bytes on the wire are a promise to other versions.
func TestWireGolden(t *testing.T) {
	for _, c := range []struct {
		name string
		got  []byte
		want string
	}{
		{"hello", appendHello(nil, hello{"job", "r1"}), "474353 01 0300 6a6f62 0200 7231"},
		{"welcome", appendWelcome(nil, replyRefused, "no"), "01 0200 6e6f"},
		{"set", appendRequest(nil, request{id: 1, op: opSet, key: "k", body: []byte("v1")}), "0c000000 01000000 01 01000000 6b 7631"},
		{"get", appendRequest(nil, request{id: 2, op: opGet, key: "k"}), "06000000 02000000 02 6b"},
		{"add", appendRequest(nil, request{id: 3, op: opAdd, key: "k", num: -2}), "0e000000 03000000 03 feffffffffffffff 6b"},
		{"cas", appendRequest(nil, request{id: 4, op: opCAS, key: "k", old: []byte("a"), body: []byte("b")}), "10000000 04000000 04 01000000 6b 01000000 61 62"},
		{"delete", appendRequest(nil, request{id: 5, op: opDelete, key: "k"}), "06000000 05000000 05 6b"},
		{"cancel", appendRequest(nil, request{id: 2, op: opCancel}), "05000000 02000000 06"},
		{"bye", appendRequest(nil, request{id: 6, op: opBye}), "05000000 06000000 07"},
		{"reply", append(replyFrame(2, replyOK, nil, []byte("v")), 'v'), "06000000 02000000 00 76"},
	} {
		require.Equal(t, strings.ReplaceAll(c.want, " ", ""), hex.EncodeToString(c.got), c.name)
	}
}

func TestParseRequestRefuses(t *testing.T) {
	frame := func(r request) []byte { return appendRequest(nil, r)[4:] }
	for name, b := range map[string][]byte{
		"short":              {1, 0, 0, 0},
		"unknown code":       frame(request{id: 1, op: 99, key: "k"}),
		"empty key":          frame(request{id: 1, op: opGet}),
		"long key":           frame(request{id: 1, op: opGet, key: strings.Repeat("k", MaxKey+1)}),
		"long value":         frame(request{id: 1, op: opSet, key: "k", body: make([]byte, MaxValue+1)}),
		"add without number": {1, 0, 0, 0, opAdd, 1, 2, 3},
		"key length":         {1, 0, 0, 0, opSet, 255, 255, 255, 255, 'k'},
		"cas old length":     {1, 0, 0, 0, opCAS, 1, 0, 0, 0, 'k', 9, 0, 0, 0, 'a'},
		"bye with a body":    {1, 0, 0, 0, opBye, 0},
	} {
		_, err := parseRequest(b)
		require.ErrorIs(t, err, goccl.ErrInvalid, name)
	}
}

func TestReadFrameBounds(t *testing.T) {
	for _, b := range [][]byte{{0, 0, 0, 0}, {4, 0, 0, 0}, {255, 255, 255, 255}} {
		_, err := readFrame(bytes.NewReader(b))
		require.ErrorIs(t, err, goccl.ErrInvalid)
	}
	// A length alone takes no memory.
	head := []byte{0, 0, 0, 1}
	allocated := testing.AllocsPerRun(1, func() {
		_, err := readFrame(bytes.NewReader(head))
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	})
	require.Less(t, allocated, 20.0)
}

func FuzzParseRequest(f *testing.F) {
	for _, r := range []request{
		{id: 1, op: opSet, key: "k", body: []byte("v")},
		{id: 2, op: opGet, key: "key"},
		{id: 3, op: opAdd, key: "n", num: -5},
		{id: 4, op: opCAS, key: "k", old: []byte("o"), body: []byte("v")},
		{id: 5, op: opDelete, key: "k"},
		{id: 6, op: opBye},
	} {
		f.Add(appendRequest(nil, r)[4:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseRequest(b)
		if err != nil {
			return
		}
		if again := appendRequest(nil, r)[4:]; !bytes.Equal(again, b) {
			t.Fatalf("%x reads as %+v, which writes as %x", b, r, again)
		}
	})
}

func FuzzHandshake(f *testing.F) {
	f.Add(appendHello(nil, hello{"job", "rank 1"}))
	f.Add(appendWelcome(nil, replyRefused, "text"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		if h, err := readHello(r); err == nil {
			if read := b[:len(b)-r.Len()]; !bytes.Equal(appendHello(nil, h), read) {
				t.Fatalf("%x reads as %+v", read, h)
			}
		}
		r = bytes.NewReader(b)
		if code, text, err := readWelcome(r); err == nil {
			if read := b[:len(b)-r.Len()]; !bytes.Equal(appendWelcome(nil, code, text), read) {
				t.Fatalf("%x reads as %d %q", read, code, text)
			}
		}
	})
}

// FuzzSession feeds a server what a client might send after its hello.
func FuzzSession(f *testing.F) {
	var all []byte
	for _, r := range []request{
		{id: 1, op: opGet, key: "k"},
		{id: 2, op: opSet, key: "k", body: []byte("12")},
		{id: 3, op: opAdd, key: "k", num: 3},
		{id: 1, op: opCancel},
		{id: 4, op: opBye},
	} {
		all = appendRequest(all, r)
	}
	f.Add(all)
	f.Add(all[:len(all)-7])
	f.Fuzz(func(t *testing.T, b []byte) {
		client, server := net.Pipe()
		ended := make(chan struct{})
		tab := newTable()
		go func() {
			defer close(ended)
			_ = newSession(tab, server, "fuzz").run(make(chan struct{}))
			server.Close()
		}()
		go func() {
			_, _ = client.Write(b)
			client.Close()
		}()
		<-ended
		if len(tab.waits) != 0 {
			t.Fatal("waits are left behind")
		}
	})
}

func TestSessionLimitsWaits(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	s := newSession(newTable(), server, "greedy")
	for id := range uint32(maxWaits) {
		require.NoError(t, s.get(request{id: id + 1, op: opGet, key: "k"}))
	}
	require.ErrorIs(t, s.get(request{id: maxWaits + 1, op: opGet, key: "k"}), goccl.ErrInvalid)
	require.NoError(t, s.execute(request{id: 9, op: opCancel}))
	require.NoError(t, s.get(request{id: maxWaits + 1, op: opGet, key: "k"}))
	require.ErrorIs(t, s.execute(request{id: 8, op: opGet, key: "k"}), goccl.ErrInvalid, "an id in use")
	s.finish(false)
	require.Empty(t, s.t.waits)
}

func TestTableIsBounded(t *testing.T) {
	tab := newTable()
	tab.limit = 10
	require.NoError(t, tab.set("abc", []byte("12345")))
	require.ErrorContains(t, tab.set("d", []byte("12")), "limit is 10 bytes")
	require.NoError(t, tab.set("abc", []byte("1234567")), "what is replaced is not counted")
	require.ErrorIs(t, tab.set("abc", []byte("12345678")), goccl.ErrInvalid)
	require.True(t, tab.delete("abc"))
	require.NoError(t, tab.set("d", []byte("123456789")))
}

// A client that ends its wait leaves no trace in the server.
func TestCancelReachesServer(t *testing.T) {
	srv, err := ListenTCP(t.Context(), "127.0.0.1:0", ServerConfig{})
	require.NoError(t, err)
	defer srv.Close()
	c, err := DialTCP(t.Context(), srv.Addr().String(), DialConfig{})
	require.NoError(t, err)
	defer c.Close()
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		_, err := c.Get(ctx, "never")
		cancel()
		require.ErrorIs(t, err, goccl.ErrTimeout)
	}
	require.NoError(t, c.Set(t.Context(), "after", nil)) // replies come in order behind the cancels
	srv.t.mu.Lock()
	defer srv.t.mu.Unlock()
	require.Empty(t, srv.t.waits)
}
