package gpu_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/exec/gpu"
	"github.com/goccl/goccl/comm/exec/gpu/gputest"
	"github.com/goccl/goccl/comm/plan"
)

// mutation is a mistake in the kernels that the tests on the emulator must find.
type mutation struct {
	name, file, old, new string
	often                bool // also in short runs
}

var mutations = []mutation{
	{"no fence before a post", "simple.h", "\t\t\tfence_system();\n", "", true},
	{"posts before all have moved", "simple.h", "\t\t\tt.sync();\n", "", false},
	{"no fence before a signal", "wait.h", "\t\t\tfence_system();\n\t\t\tpost64(s.word", "\t\t\tpost64(s.word", false},
	{"frees LL slots before all have read", "ll.h", "\t\tt.sync();\n\t\tif (t.warp() != 0) return;", "\t\tif (t.warp() != 0) return;", false},
	{"stale lines stay", "ll.h", "return r < slots || r + slots > mask;", "return false;", true},
	{"only the first turn sweeps", "ll.h", "return r < slots || r + slots > mask;", "return r < slots;", false},
	{"nothing is no message", "ll.h", "bytes > 8 ? (bytes + 7) / 8 : 1", "(bytes + 7) / 8", false},
	{"one flag of two", "ll.h", " && (u32)(line.hi >> 32) == flag", "", false},
	{"no credit", "wait.h", "return s < slots_of(b) || reached(b, t, c, s + 1 - slots_of(b));", "return true;", false},
	{"one slot too many", "wait.h", "reached(b, t, c, s + 1 - slots_of(b))", "reached(b, t, c, s - slots_of(b))", false},
	{"no credit by Simple", "simple.h", "if (send || receive) return", "if (send) return true;\n\t\tif (receive) return", false},
	{"no wait for a tail", "simple.h", "if (send || receive) return", "if (receive) return true;\n\t\tif (send) return", false},
	{"no wait for scratch", "simple.h", "return until(b, scratch_flag", "return true || until(b, scratch_flag", false},
	{"no wait for a signal", "wait.h", "ok = m.dead || until(b, s.word, count.done, &now);", "(void)now;", false},
	{"the epoch stays", "interp.h", "st64(state, b.epoch() + 1)", "st64(state, b.epoch())", false},
	{"steps stay", "interp.h", "> 0) v.lo = c.done", "> 0) v.lo = v.lo", false},
	{"a lane is let go too early", "wait.h", "\tt.sync();\n\tif (t.thread() == 0) {\n\t\tfence_block();", "\tif (t.thread() == 0) {\n\t\tfence_block();", false},
	{"bf16 cut off", "reduce.h", "return join(pack_bf16(a.x[0], a.x[1]), pack_bf16(a.x[2], a.x[3]));", "return join(as_bits(a.x[0]) >> 16 | (as_bits(a.x[1]) & 0xffff0000), pack_bf16(a.x[2], a.x[3]));", false},
	{"any NaN", "reduce.h", "return v != v ? as_float(0x7fc00000) : v;", "return v;", false},
	{"the last piece is left", "move.h", "before + (job.bytes - hi) / R::esize", "before + (job.bytes - hi) / R::esize / 2", false},
	{"posts although a thread gave up", "simple.h", "\t\t\tif (b.died()) continue;\n", "", false},
	{"the state advances although a thread gave up", "interp.h", "\tif (b.died()) return;\n", "", false},
	{"fused: the epoch stays", "fused.h", "st64(state, epoch + 1)", "st64(state, epoch)", false},
	{"fused: the epoch advances although a thread gave up", "fused.h", "block_all(ok) && thread()", "(block_all(ok), thread())", false},
	{"fused: the epoch is overwritten before all have read it", "fused.h", "if (block_all(ok) && thread() == 0)", "if (thread() == 0)", false},
	{"fused: stale lines stay", "fused.h", "if (sweeps(a.flag_mask", "if (false && sweeps(a.flag_mask", false},
	{"fused: no wait", "fused.h", "!LL::full(line, flag)", "false", true},
	{"fused: one bank", "fused.h", "e % InterpBanks * a.slot_bytes", "0 * a.slot_bytes", false},
	{"fused: aborts are not seen", "fused.h", "turns % AbortSpins == 0 &&", "turns == 0 &&", false},
	{"aborts are not seen", "wait.h", "if (host32((u64)&b.a.status->abort) == 0) return false;", "return false;", false},
}

// recorder is a testing.TB whose failures do not fail the test.
type recorder struct {
	testing.TB
	failed  bool
	cleanup []func()
}

func (r *recorder) Errorf(string, ...any) { r.failed = true }
func (r *recorder) Helper()               {}
func (r *recorder) Failed() bool          { return r.failed }
func (r *recorder) Cleanup(f func())      { r.cleanup = append(r.cleanup, f) }
func (r *recorder) FailNow() {
	r.failed = true
	runtime.Goexit()
}

// fails reports whether f fails.
func fails(t *testing.T, f func(t testing.TB)) bool {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for i := len(r.cleanup) - 1; i >= 0; i-- {
				r.cleanup[i]()
			}
		}()
		f(r)
	}()
	<-done
	return r.failed
}

// TestMistakesAreFound makes each mistake and sees the tests fail: the emulator is
// worth something only as far as it finds what it is for.
func TestMistakesAreFound(t *testing.T) {
	needCompiler(t)
	for _, m := range mutations {
		if !m.often && os.Getenv("GOCCL_NIGHTLY") == "" {
			continue
		}
		t.Run(strings.ReplaceAll(m.name, " ", "-"), func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, copySources(dir))
			path := filepath.Join(dir, "kernels", "interp", m.file)
			src, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, 1, strings.Count(string(src), m.old), "%s has %q", m.file, m.old)
			require.NoError(t, os.Chmod(path, 0o644))
			require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(src), m.old, m.new, 1)), 0o644))
			bin, err := compileEmulator(dir, "-O0", "-Wno-unused")
			require.NoError(t, err)
			found := false
			for seed := uint64(0); seed < 12 && !found; seed++ {
				found = fails(t, func(t testing.TB) { everything(t, bin, seed) })
			}
			require.True(t, found, "no test fails")
		})
	}
}

// everything is a little of all that the other tests do.
func everything(t testing.TB, bin string, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 3))
	start := func(n int) (*gputest.World, *emulator) {
		e := startEmulator(t, bin, n)
		e.most = 30_000_000
		return gputest.New(t, gputest.Small(n), e), e
	}
	w, e := start(2 + int(seed%2))
	w.Bind = func(r *gpu.Rank, p *plan.Program) (*gpu.Bound, error) {
		return r.BindMask(p, 15, (p.Rank+int(seed))%2 == 0)
	}
	var keys []plan.Key
	gputest.Cases(w.Layout, func(k plan.Key) { keys = append(keys, k) })
	for range 30 {
		k := keys[rng.IntN(len(keys))]
		k.Channels = 1
		w.Do(gputest.Random(k, w.Layout.Ranks, e.Threads(), rng), rng)
	}
	w.Run(rng.Uint64())
	for _, a := range [][]goccl.Algorithm{{goccl.OneShot}, {goccl.OneShot, goccl.Ring}} {
		for i := range 40 {
			k := gputest.KeyOf(w.Layout, goccl.AllReduce, a[i%len(a)], goccl.LL, goccl.F32)
			k.Channels = 1
			w.Do(gputest.Op{Key: k, Elems: []int{0, 1, 0, 2, 120, 30}[rng.IntN(6)], PlainBits: true}, rng)
		}
		w.Run(rng.Uint64())
	}

	w, e = start(2)
	w.Build = func(k plan.Key, rank int) *plan.Program { return gputest.TwoLanes(k, rank, 2) }
	for _, p := range []goccl.Protocol{goccl.LL, goccl.Simple} {
		k := gputest.KeyOf(w.Layout, goccl.AllReduce, goccl.Ring, p, goccl.F32)
		k.Op = goccl.Max
		for _, threads := range append(e.Threads(), 64) {
			w.Do(gputest.Op{Key: k, Elems: 3000, InPlace: true, Threads: threads}, rng)
		}
		w.Run(rng.Uint64())
	}

	for i := range 9 {
		w, e = start(2)
		k := keys[rng.IntN(len(keys))]
		if i%3 == 0 { // a fused kernel
			k = gputest.KeyOf(w.Layout, goccl.AllReduce, goccl.OneShot, goccl.LL, goccl.F32)
		}
		abortInTheMiddle(t, w, e, k, rng)
	}
}
