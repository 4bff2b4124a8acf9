package ccl_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm"
	"github.com/goccl/goccl/comm/plan/algo"
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

// fixed chooses one algorithm, protocol, channel count and chunk wherever they
// fit, so that every Program meets real bytes in many iterations.
type fixed struct {
	algo     goccl.Algorithm
	proto    goccl.Protocol
	channels int
	chunk    int64
}

// Choose implements comm.Tuner.
func (f fixed) Choose(r comm.Request) (comm.Decision, error) {
	d, err := comm.DefaultTuner().Choose(r)
	part := r.Bytes
	if r.Coll == goccl.AllGather {
		part /= int64(r.Ranks)
	}
	if algo.Supports(r.Coll, f.algo, r.Ranks) == nil && (f.algo != goccl.OneShot || part <= r.MaxOneShot) {
		d.Algo = f.algo
	}
	if d.Algo != goccl.OneShot {
		d.Proto, d.Channels, d.Chunk = f.proto, f.channels, f.chunk
	}
	return d, err
}

func TestForced(t *testing.T) {
	for _, f := range []fixed{
		{goccl.Ring, goccl.Simple, 1, 512},
		{goccl.Ring, goccl.LL, 3, 1024},
		{goccl.Tree, goccl.LL, 2, 512},
		{goccl.Tree, goccl.Simple, 1, 4096},
		{goccl.TwoShot, goccl.LL, 2, 512},
		{goccl.TwoShot, goccl.Simple, 4, 1024},
		{goccl.Direct, goccl.LL, 1, 512},
		{goccl.Direct, goccl.Simple, 3, 1024},
		{goccl.OneShot, goccl.LL, 1, 8192},
	} {
		name := fmt.Sprintf("%v-%v-%d-%d", f.algo, f.proto, f.channels, f.chunk)
		pgtest.RunWith(t, name, pgtest.Options{Cases: 120, MatrixOnly: true}, connect("inproc", f))
	}
}
