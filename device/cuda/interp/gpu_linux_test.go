package interp

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/exec/gpu"
	"github.com/goccl/goccl/comm/exec/gpu/gputest"
	"github.com/goccl/goccl/comm/plan"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/device/cuda"
	"github.com/goccl/goccl/internal/testproc"
)

func TestMain(m *testing.M) {
	testproc.Enter(map[string]testproc.Rank{"ops": opsRank, "wait": waitRank})
	os.Exit(m.Run())
}

// testPatience bounds every wait for the GPU: a kernel that waits for ever is
// stopped and the test fails.
const testPatience = 45 * time.Second

// machine is GPUs of this process, one for each rank; ranks may share one.
type machine struct {
	t       testing.TB
	devs    []*cuda.Device
	ours    []*Device
	streams []*cuda.Stream
}

var _ gputest.Machine = (*machine)(nil)

// driver returns the driver, and skips where there are not that many GPUs. Without
// any GPU it fails when GOCCL_REQUIRE has cuda.
func driver(t testing.TB, gpus int) *cuda.Driver {
	t.Helper()
	drv, err := cuda.Load()
	var all []cuda.Info
	if err == nil {
		all, err = drv.Devices()
	}
	if err != nil {
		require.False(t, slices.Contains(strings.Split(os.Getenv("GOCCL_REQUIRE"), ","), "cuda"), "GOCCL_REQUIRE has cuda: %v", err)
		t.Skip(err)
	}
	if len(all) < gpus {
		t.Skipf("%d GPUs are needed, %d are visible", gpus, len(all))
	}
	return drv
}

// newMachine opens the GPU of each rank: indices by rank.
func newMachine(t testing.TB, indices ...int) *machine {
	t.Helper()
	drv := driver(t, slices.Max(indices)+1)
	m := &machine{t: t}
	for _, i := range indices {
		d, err := drv.Open(i)
		require.NoError(t, err)
		o := New(d)
		s, err := d.Stream(0)
		require.NoError(t, err)
		t.Cleanup(func() {
			require.NoError(t, s.Close())
			require.NoError(t, o.Close())
			require.NoError(t, d.Close())
		})
		m.devs, m.ours, m.streams = append(m.devs, d), append(m.ours, o), append(m.streams, s)
	}
	return m
}

func (m *machine) Device(rank int) gpu.Device    { return m.ours[rank%len(m.ours)] }
func (m *machine) Stream(rank int) device.Stream { return m.streams[rank%len(m.streams)] }
func (m *machine) Threads() []int                { return []int{64, 160, 512} }

func (m *machine) Read(rank int, addr uintptr, b []byte) {
	ctx, cancel := context.WithTimeout(context.Background(), testPatience)
	defer cancel()
	require.NoError(m.t, m.devs[rank%len(m.devs)].Read(ctx, b, addr))
}

// Run waits for all streams.
func (m *machine) Run(uint64) error {
	ctx, cancel := context.WithTimeout(context.Background(), testPatience)
	defer cancel()
	for i, s := range m.streams {
		if err := s.Sync(ctx); err != nil {
			return fmt.Errorf("stream of rank %d: %w", i, err)
		}
	}
	return nil
}

func TestGPUSharedByRanks(t *testing.T) {
	gputest.Suite(t, []int{2, 3, 4}, func(t *testing.T, n int) gputest.Machine { return newMachine(t, make([]int, n)...) })
}

func TestGPUPeers(t *testing.T) {
	gputest.Suite(t, []int{2}, func(t *testing.T, _ int) gputest.Machine { return newMachine(t, 0, 1) })
	t.Run("four ranks on two", func(t *testing.T) {
		gputest.Suite(t, []int{4}, func(t *testing.T, _ int) gputest.Machine { return newMachine(t, 0, 1, 0, 1) })
	})
}

// places are the ways in which two ranks can lie.
var places = map[string][]int{"one GPU": {0, 0}, "two GPUs": {0, 1}}

// TestGPUGraph captures launches in a graph and replays it between eager ones.
func TestGPUGraph(t *testing.T) {
	for name, indices := range places {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, indices...)
			w := gputest.New(t, gputest.Small(2), m)
			graphs := make([]*cuda.Executable, 2)
			w.Ahead = func(rank int, launch func() error, times int) error {
				if times > 1 {
					require.NoError(t, m.Run(0)) // instantiating may wait for what was launched before
					graphs[rank] = m.capture(t, rank, func() error { return repeat(5, launch) })
				}
				return nil
			}
			w.Around = func(rank int, launch func() error, times int) error {
				if times == 1 {
					return launch()
				}
				return m.mixed(rank, launch, graphs[rank], times)
			}
			rng := rand.New(rand.NewPCG(11, 12))
			for round := range 4 {
				for _, k := range []plan.Key{
					gputest.KeyOf(w.Layout, goccl.AllReduce, goccl.OneShot, goccl.LL, goccl.F32),
					gputest.KeyOf(w.Layout, goccl.AllReduce, goccl.Ring, goccl.LL, goccl.BF16),
					gputest.KeyOf(w.Layout, goccl.AllReduce, goccl.Ring, goccl.Simple, goccl.F32),
					gputest.KeyOf(w.Layout, goccl.AllReduce, goccl.TwoShot, goccl.Simple, goccl.BF16),
				} {
					w.Do(gputest.Op{Key: k, Elems: 200 + round, InPlace: true, Repeat: 12}, rng)
					w.Do(gputest.Op{Key: k, Elems: 33 + round}, rng)
				}
				w.Run(0)
			}
		})
	}
}

// repeat calls f n times.
func repeat(n int, f func() error) error {
	for range n {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// mixed makes times launches: two eager ones, the others by replaying a graph of
// five.
func (m *machine) mixed(rank int, launch func() error, x *cuda.Executable, times int) error {
	if err := repeat(2, launch); err != nil {
		return err
	}
	return repeat((times-2)/5, func() error { return m.replay(rank, x) })
}

func (m *machine) capture(t testing.TB, rank int, fn func() error) *cuda.Executable {
	t.Helper()
	g, err := m.streams[rank].Capture(fn)
	require.NoError(t, err)
	x, err := g.Instantiate()
	require.NoError(t, err)
	require.NoError(t, g.Close())
	t.Cleanup(func() { require.NoError(t, x.Close()) })
	return x
}

func (m *machine) replay(rank int, x *cuda.Executable) error {
	sec, err := m.streams[rank].Enter()
	if err != nil {
		return err
	}
	defer sec.Leave()
	return sec.Replay(x)
}

// TestGPUStress runs random operations in regions of their ordinary size, with
// random sizes up to megabytes.
func TestGPUStress(t *testing.T) {
	for name, indices := range places {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, indices...)
			l := gpu.DefaultLayout(2, 132)
			w := gputest.New(t, l, m)
			rng := rand.New(rand.NewPCG(21, 22))
			var keys []plan.Key
			gputest.Cases(l, func(k plan.Key) { keys = append(keys, k) })
			for round := range gputest.Rounds(12) {
				for range 25 {
					k := keys[rng.IntN(len(keys))]
					k.Channels = uint8(1 + rng.IntN(4)) // as many as the host executor has
					o := gputest.Random(k, 2, m.Threads(), rng)
					o.Threads, o.PlainBits = 0, rng.IntN(4) == 0
					if k.Algo != goccl.OneShot && k.Coll != goccl.Barrier {
						o.Elems = rng.IntN(1 << (4 + rng.IntN(16)))
					}
					w.Do(o, rng)
				}
				w.Run(uint64(round))
			}
			big := gputest.KeyOf(l, goccl.AllReduce, goccl.Ring, goccl.Simple, goccl.F32)
			big.Channels = 4
			w.Do(gputest.Op{Key: big, Elems: 9_000_001}, rng)
			w.Run(0)
		})
	}
}

// TestGPUAbort stops a kernel that waits for a peer that never comes. Its context
// goes on working.
func TestGPUAbort(t *testing.T) {
	for name, indices := range places {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, indices...)
			gputest.Cases(gputest.Small(2), func(k plan.Key) {
				if k.Coll == goccl.SendRecv || k.Coll.Rooted() || k.Coll == goccl.Barrier {
					return // some ranks of these wait for nobody
				}
				w := gputest.New(t, gputest.Small(2), m)
				w.Unsure[0], w.Unsure[1] = true, true
				w.Around = func(rank int, launch func() error, _ int) error {
					if rank == 1 {
						return nil // never comes
					}
					return launch()
				}
				sizes := gputest.Sizes(k)
				w.Do(gputest.Op{Key: k, Elems: sizes[len(sizes)-1]}, rand.New(rand.NewPCG(1, 1)))
				e, err := m.streams[0].Record()
				require.NoError(t, err)
				done, err := e.Done()
				require.NoError(t, err)
				require.False(t, done, "%v ended without its peer", k)
				w.Ranks[0].Abort()
				require.NoError(t, m.Run(0))
				e.Release()
				w.Check()
			})
			w := gputest.New(t, gputest.Small(2), m)
			w.Do(gputest.Op{Key: gputest.KeyOf(w.Layout, goccl.AllReduce, goccl.Ring, goccl.Simple, goccl.F32), Elems: 3000}, rand.New(rand.NewPCG(1, 1)))
			w.Run(0)
		})
	}
}
