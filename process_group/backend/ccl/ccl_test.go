package ccl_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/comm"
	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/process_group/backend/ccl"
	"github.com/goccl/goccl/process_group/pgtest"

	processgroup "github.com/goccl/goccl/process_group"
)

// only keeps the transport with the given name, and the others out.
func only(name string) func([]transport.Transport) []transport.Transport {
	return func(ts []transport.Transport) []transport.Transport {
		var out []transport.Transport
		for _, t := range ts {
			if t.Name() == name {
				out = append(out, t)
			} else {
				_ = t.Close()
			}
		}
		return out
	}
}

// connect makes n ranks of this process over one transport.
func connect(transportName string, tuner comm.Tuner) pgtest.Make {
	return func(t *testing.T, n int) []*processgroup.Group {
		t.Helper()
		root, err := comm.ListenLocal(comm.RootOptions{Size: n})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		served := make(chan error, 1)
		go func() { served <- root.Serve(ctx) }()
		t.Cleanup(func() {
			_ = root.Close()
			<-served
			cancel()
		})
		gs, errs := make([]*processgroup.Group, n), make([]error, n)
		var wg sync.WaitGroup
		for r := range n {
			wg.Add(1)
			go func() {
				defer wg.Done()
				b, err := ccl.New(ctx, root.ID(), ccl.Config{Rank: r, Size: n, Name: t.Name(), Decorate: only(transportName), Timeout: 50 * time.Second, Tuner: tuner})
				if err != nil {
					errs[r] = err
					return
				}
				gs[r] = processgroup.New(processgroup.Config{Name: "g", Rank: r, Size: n, Backend: b, Control: b.Control(), Timeout: 50 * time.Second})
			}()
		}
		wg.Wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
		return gs
	}
}

func TestInproc(t *testing.T) { pgtest.Run(t, "inproc", connect("inproc", nil)) }
func TestShm(t *testing.T)    { pgtest.Run(t, "shm", connect("shm", nil)) }
func TestSocket(t *testing.T) { pgtest.Run(t, "socket", connect("net/socket", nil)) }
