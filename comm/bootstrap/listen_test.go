package bootstrap

import (
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
)

func TestC27PortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, err = ListenRoot(t.Context(), l.Addr().String(), RootOptions{Size: 2})
	require.ErrorContains(t, err, fmt.Sprintf("address %s in use", l.Addr()))
}

// C13: the root listens inside the range, and says the range when it is full.
func TestC13PortRange(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	_, err = ListenRoot(t.Context(), "127.0.0.1:0", RootOptions{Size: 2, PortRange: PortRange{port, port}})
	require.ErrorContains(t, err, fmt.Sprintf("no free port in range %d-%d", port, port))

	last := min(port+200, 65535)
	r, err := ListenRoot(t.Context(), "127.0.0.1:0", RootOptions{Size: 2, PortRange: PortRange{port, last}})
	require.NoError(t, err)
	defer r.Close()
	got := int(r.ID().endpoints()[0].port)
	require.Greater(t, got, port)
	require.LessOrEqual(t, got, last)
}

// C31: a listener that was opened earlier, by a launcher for example, is used as it is.
func TestC31ListenerHandedOver(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r, err := ListenRoot(t.Context(), "", RootOptions{Size: 2, Listener: l})
	require.NoError(t, err)
	require.Equal(t, []string{l.Addr().String()}, []string{r.ID().endpoints()[0].String()})
	require.NoError(t, r.Close())
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed, "it is the root's")
}

// C19: loopback is published only if it was asked for or nothing else is there.
func TestC19LoopbackIsNotPublished(t *testing.T) {
	nics, err := systemNICs()
	require.NoError(t, err)
	best, err := usableAddrs(nics, "", routedAddr())
	require.NoError(t, err)
	for _, addr := range []string{"", ":0"} {
		r, err := ListenRoot(t.Context(), addr, RootOptions{Size: 2})
		require.NoError(t, err)
		es := r.ID().endpoints()
		require.NotEmpty(t, es)
		for _, e := range es {
			require.Equal(t, best[0].IsLoopback(), e.addr.IsLoopback())
		}
		require.NoError(t, r.Close())
	}
	r, err := ListenRoot(t.Context(), "localhost:0", RootOptions{Size: 2})
	require.NoError(t, err)
	for _, e := range r.ID().endpoints() {
		require.True(t, e.addr.IsLoopback())
		require.Empty(t, e.name)
	}
	require.NoError(t, r.Close())
}

func TestListenRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		addr string
		opt  RootOptions
	}{
		"no size":      {opt: RootOptions{}},
		"huge":         {opt: RootOptions{Size: maxSize + 1}},
		"no port":      {addr: "127.0.0.1", opt: RootOptions{Size: 2}},
		"port":         {addr: "127.0.0.1:99999", opt: RootOptions{Size: 2}},
		"range":        {opt: RootOptions{Size: 2, PortRange: PortRange{9, 3}}},
		"interfaces":   {opt: RootOptions{Size: 2, Interfaces: "eth?"}},
		"local socket": {addr: "local", opt: RootOptions{Size: 2, Listener: newLocalListener()}},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			if c.addr == "local" {
				_, err = ListenLocal(c.opt)
			} else {
				_, err = ListenRoot(t.Context(), c.addr, c.opt)
			}
			require.ErrorIs(t, err, goccl.ErrInvalid)
		})
	}
	_, err := ListenRoot(t.Context(), "", RootOptions{Size: 2, Interfaces: "nosuch"})
	require.ErrorContains(t, err, `rank 0: listen: no usable address on interfaces "nosuch"; this host has `)
}

func TestRootEndsWithoutServing(t *testing.T) {
	r, err := ListenLocal(RootOptions{Size: 2})
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.NoError(t, r.Close())
	_, err = Join(t.Context(), r.ID(), Config{Rank: 0, Size: 2})
	require.ErrorIs(t, err, goccl.ErrClosed)
	require.ErrorContains(t, err, "no root with this id is open in this process")
}

func TestServeOnlyOnce(t *testing.T) {
	ctx := testContext(t)
	r := openRoot(t, "inproc", RootOptions{Size: 2})
	wait := serveRoot(ctx, t, r)
	require.Eventually(t, r.started.Load, watchdog, 1e6)
	require.ErrorIs(t, r.Serve(ctx), goccl.ErrInvalid)
	require.NoError(t, r.Close())
	require.ErrorIs(t, wait(), goccl.ErrClosed)
	require.ErrorContains(t, wait(), "missing ranks 0, 1")
}

func TestRootLogsWhereItListens(t *testing.T) {
	var log strings.Builder
	r, err := ListenRoot(t.Context(), "127.0.0.1:0", RootOptions{Size: 2, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	require.Contains(t, log.String(), "127.0.0.1:"+strconv.Itoa(int(r.ID().endpoints()[0].port)))
	require.NoError(t, r.Close())
}
