package interp

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/exec/gpu"
	"github.com/goccl/goccl/comm/exec/gpu/gputest"
	"github.com/goccl/goccl/comm/plan"
	"github.com/goccl/goccl/internal/testproc"
)

// child is a testing.TB of a rank process: what fails ends the rank.
type child struct {
	testing.TB
	err     error
	cleanup []func()
}

type giveUp struct{}

func (c *child) Helper()                      {}
func (c *child) Errorf(f string, args ...any) { c.err = errors.Join(c.err, fmt.Errorf(f, args...)) }
func (c *child) Failed() bool                 { return c.err != nil }
func (c *child) Cleanup(f func())             { c.cleanup = append(c.cleanup, f) }
func (c *child) FailNow()                     { panic(giveUp{}) } // panic: caught by inChild
func (c *child) Skip(args ...any) {
	c.err = fmt.Errorf("skipped: %v", args)
	panic(giveUp{}) // panic: caught by inChild
}
func (c *child) Skipf(f string, args ...any) { c.Skip(fmt.Sprintf(f, args...)) }

// inChild runs f and its clean-ups.
func inChild(f func(t testing.TB)) error {
	c := &child{}
	run := func(f func()) {
		defer func() {
			if r := recover(); r != nil {
				if _, ok := r.(giveUp); !ok {
					panic(r) // panic: not ours
				}
			}
		}()
		f()
	}
	run(func() { f(c) })
	for i := len(c.cleanup) - 1; i >= 0; i-- {
		run(c.cleanup[i])
	}
	return c.err
}

// exchange tells the parent this rank's handle and gets those of all.
func exchange(t testing.TB, c *testproc.Child) func(own []byte) [][]byte {
	return func(own []byte) (all [][]byte) {
		require.NoError(t, c.Ready(base64.StdEncoding.EncodeToString(own)))
		for _, s := range strings.Fields(c.Next()) {
			h, err := base64.StdEncoding.DecodeString(s)
			require.NoError(t, err)
			all = append(all, h)
		}
		return all
	}
}

// introduce is exchange on the parent's side.
func introduce(t *testing.T, g *testproc.Group) {
	lines := g.WaitReady(t)
	for _, p := range g.Procs {
		p.Send(t, strings.Join(lines, " "))
	}
}

// opsRank is one rank of random operations that all ranks derive from one seed.
func opsRank(c *testproc.Child) error {
	return inChild(func(t testing.TB) {
		m := newMachine(t, c.Rank)
		l := gputest.Small(c.Size)
		w := gputest.NewOne(t, l, m, c.Rank, exchange(t, c))
		rng := rand.New(rand.NewPCG(31, 32))
		var keys []plan.Key
		gputest.Cases(l, func(k plan.Key) {
			if k.Window == plan.WindowNone { // other processes' buffers are not mapped here
				keys = append(keys, k)
			}
		})
		for range gputest.Rounds(6) {
			for range 25 {
				k := keys[rng.IntN(len(keys))]
				k.Channels = uint8(1 + rng.IntN(l.Channels))
				w.Do(gputest.Random(k, c.Size, m.Threads(), rng), rng)
			}
			w.Run(0)
		}
		require.NoError(t, c.Ready("done"))
		require.Equal(t, "leave", c.Next()) // all have ended before any region goes
	})
}

// TestGPUProcesses runs ranks as processes that share memory by handles. Each has a
// GPU: processes on one GPU take turns, and kernels that wait for each other would
// wait for long.
func TestGPUProcesses(t *testing.T) {
	driver(t, 2)
	g := testproc.Start(t, "ops", 2, testproc.Options{})
	introduce(t, g)
	for _, line := range g.WaitReady(t) {
		require.Equal(t, "done", line)
	}
	for _, p := range g.Procs {
		p.Send(t, "leave")
	}
	g.Wait(t)
}

// waitRank waits in a kernel for rank 1, which is killed, and then goes on alone.
func waitRank(c *testproc.Child) error {
	return inChild(func(t testing.TB) {
		m := newMachine(t, c.Rank)
		l := gputest.Small(c.Size)
		w := gputest.NewOne(t, l, m, c.Rank, exchange(t, c))
		rng := rand.New(rand.NewPCG(41, 42))
		k := gputest.KeyOf(l, goccl.AllReduce, goccl.Ring, goccl.Simple, goccl.F32)
		w.Do(gputest.Op{Key: k, Elems: 3000}, rng)
		w.Run(0)
		require.NoError(t, c.Ready("met"))
		if c.Rank == 1 {
			c.Next() // until it is killed
			return
		}
		w.Unsure[0] = true
		w.Do(gputest.Op{Key: k, Elems: 3000}, rng)
		require.NoError(t, c.Ready("waits"))
		require.Equal(t, "killed", c.Next())
		w.Ranks[0].Abort()
		require.NoError(t, m.Run(0), "the kernel is stopped, the context lives")
		w.Check()
		alone := gpu.DefaultLayout(1, 132)
		one := gputest.New(t, alone, m)
		one.Do(gputest.Op{Key: gputest.KeyOf(alone, goccl.AllReduce, goccl.Ring, goccl.Simple, goccl.F32), Elems: 5000}, rng)
		one.Run(0)
	})
}

// TestGPUPeerIsKilled kills a rank for which another's kernel waits.
func TestGPUPeerIsKilled(t *testing.T) {
	driver(t, 2)
	g := testproc.Start(t, "wait", 2, testproc.Options{})
	introduce(t, g)
	for _, line := range g.WaitReady(t) {
		require.Equal(t, "met", line)
	}
	require.Equal(t, "waits", g.Procs[0].Next(t))
	g.Procs[1].Kill(t)
	g.Procs[0].Send(t, "killed")
	require.NoError(t, g.Procs[0].Wait(t), "%s", g.Procs[0].Output())
}
