package store_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/dist/store"
	"github.com/goccl/goccl/dist/store/storetest"
)

func TestMem(t *testing.T) {
	storetest.Test(t, func(t *testing.T) func() store.Store {
		s := store.NewMem()
		return func() store.Store { return s.Share() }
	})
}

func TestFile(t *testing.T) {
	storetest.Test(t, func(t *testing.T) func() store.Store {
		path := filepath.Join(t.TempDir(), "store")
		return func() store.Store {
			s, err := store.NewFile(path)
			require.NoError(t, err)
			return s
		}
	})
}

// listen starts a server that a test need not close.
func listen(t *testing.T, cfg store.ServerConfig) *store.Server {
	t.Helper()
	srv, err := store.ListenTCP(t.Context(), "127.0.0.1:0", cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, srv.Close()) })
	return srv
}

func dial(t *testing.T, srv *store.Server, cfg store.DialConfig) *store.Client {
	t.Helper()
	c, err := store.DialTCP(t.Context(), srv.Addr().String(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func TestTCP(t *testing.T) {
	storetest.Test(t, func(t *testing.T) func() store.Store {
		srv := listen(t, store.ServerConfig{Job: "suite"})
		return func() store.Store { return dial(t, srv, store.DialConfig{Job: "suite"}) }
	})
}

// The server's own handle and a client see the same data.
func TestTCPLocalAndRemote(t *testing.T) {
	storetest.Test(t, func(t *testing.T) func() store.Store {
		srv := listen(t, store.ServerConfig{})
		local := false
		return func() store.Store {
			if local = !local; local {
				return srv.Store()
			}
			return dial(t, srv, store.DialConfig{})
		}
	})
}

// handle is a prefix view that owns its handle, as the suite closes one.
type handle struct {
	store.Store
	under store.Store
}

func (h handle) Close() error { return h.under.Close() }

func TestPrefix(t *testing.T) {
	storetest.Test(t, func(t *testing.T) func() store.Store {
		s := store.NewMem()
		require.NoError(t, s.Set(t.Context(), "k", []byte("not yours")))
		return func() store.Store {
			under := s.Share()
			return handle{store.Prefix(store.Prefix(under, "job/"), "group/"), under}
		}
	})
}

func TestPrefixSeparates(t *testing.T) {
	ctx := t.Context()
	s := store.NewMem()
	a, b := store.Prefix(s, "a/"), store.Prefix(store.Prefix(s, "b/"), "c/")
	require.NoError(t, a.Set(ctx, "k", []byte("1")))
	require.NoError(t, b.Set(ctx, "k", []byte("2")))
	for key, want := range map[string]string{"a/k": "1", "b/c/k": "2"} {
		got, err := s.Get(ctx, key)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	require.NoError(t, a.Close())
	require.NoError(t, a.Set(ctx, "k", []byte("3")), "closing a view leaves the store open")
}
