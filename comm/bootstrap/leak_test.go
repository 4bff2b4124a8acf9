package bootstrap

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
)

// C16: nothing is left of 500 handshakes that failed, on either side.
func TestC16FailedHandshakesLeakNothing(t *testing.T) {
	ctx := testContext(t)
	root := openRoot(t, "tcp", RootOptions{Size: 2})
	serveRoot(ctx, t, root)
	id := root.ID()
	wrong := id
	wrong[idSecret] ^= 1
	wrong.seal()
	_, err := Join(ctx, wrong, Config{Rank: 1, Size: 2}) // what is made once is made now
	require.Error(t, err)
	files := openFiles(t)
	beforeFiles, beforeRoutines := files(), goroutines()
	addr := rootAddr(t, root)
	for i := range 500 {
		if i%2 == 0 {
			_, err := Join(ctx, wrong, Config{Rank: 1, Size: 2})
			require.ErrorIs(t, err, goccl.ErrMismatch)
			continue
		}
		c, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		_, err = c.Write([]byte("wrong magic"))
		require.NoError(t, err)
		require.NoError(t, c.Close())
	}
	settled(t, "open files", beforeFiles, files)
	settled(t, "goroutines", beforeRoutines, goroutines)
}

// C15: worlds made and closed in a loop leave nothing behind.
func TestC15WorldsInALoopLeakNothing(t *testing.T) {
	files := openFiles(t)
	ctx := testContext(t)
	cycle := func() {
		root, err := ListenRoot(ctx, "127.0.0.1:0", RootOptions{Size: 2})
		require.NoError(t, err)
		served := make(chan error, 1)
		go func() { served <- root.Serve(ctx) }()
		for _, err := range each(2, func(rank int) error {
			s, err := Join(ctx, root.ID(), Config{Rank: rank, Size: 2})
			if err != nil {
				return err
			}
			if err := s.Barrier(ctx); err != nil {
				return err
			}
			return s.Close()
		}) {
			require.NoError(t, err)
		}
		require.NoError(t, <-served)
		require.NoError(t, root.Close())
	}
	cycle()
	beforeFiles, beforeRoutines := files(), goroutines()
	for range 100 {
		cycle()
	}
	settled(t, "open files", beforeFiles, files)
	settled(t, "goroutines", beforeRoutines, goroutines)
}
