package nccl

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/device/cuda"
	processgroup "github.com/goccl/goccl/process_group"
	"github.com/goccl/goccl/process_group/backend/nccl/libnccl"
)

// floats is memory of n f32 on a device, filled with f.
func floats(t *testing.T, d *cuda.Device, n int, f func(i int) float32) device.Buffer {
	t.Helper()
	m, err := d.AllocMemory(4 * n)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Free()) })
	p := make([]byte, 4*n)
	for i := range n {
		binary.LittleEndian.PutUint32(p[4*i:], math.Float32bits(f(i)))
	}
	require.NoError(t, d.Write(t.Context(), m.Addr(), p))
	return device.FromPointer(m.Addr(), n, goccl.F32, d.ID(), m)
}

// holds compares memory with f.
func holds(t *testing.T, d *cuda.Device, b device.Buffer, f func(i int) float32) {
	t.Helper()
	p := make([]byte, b.Bytes())
	require.NoError(t, d.Read(t.Context(), p, b.Addr))
	for i := range b.Count {
		if got := math.Float32frombits(binary.LittleEndian.Uint32(p[4*i:])); got != f(i) {
			t.Fatalf("element %d on %v is %v, want %v", i, d.ID(), got, f(i))
		}
	}
}

func mine(rank int) func(i int) float32 {
	return func(i int) float32 { return float32(100*(rank+1) + i%50) }
}

// sumOf2 is the sum of mine over two ranks, times k.
func sumOf2(k float32) func(i int) float32 {
	return func(i int) float32 { return k * (300 + 2*float32(i%50)) }
}

// Work of a stream comes after an operation that it was joined to, without the
// host; and with OnCaller after every operation that was called on it.
func TestGPUJoin(t *testing.T) {
	r := gpus(t, 2)
	for name, onCaller := range map[string]bool{"join": false, "caller": true} {
		t.Run(name, func(t *testing.T) {
			gs := r.groups(t, 2, func(cfg *Config) { cfg.OnCaller = onCaller })
			defer closeAll(t, gs)
			const n = 1 << 20
			var in, out [2]device.Buffer
			for rank := range gs {
				in[rank], out[rank] = floats(t, r.devs[rank], n, mine(rank)), floats(t, r.devs[rank], n, func(int) float32 { return -1 })
			}
			errs := make([]error, 2)
			each(2, func(rank int) {
				s := r.streams[rank]
				w := gs[rank].AllReduce(in[rank], goccl.Sum)
				if !onCaller {
					errs[rank] = w.Join(s)
				}
				errs[rank] = errors.Join(errs[rank], s.Copy(out[rank].Addr, in[rank].Addr, 4*n), s.Sync(t.Context()), w.Wait(t.Context()))
			})
			for rank, d := range r.devs {
				require.NoError(t, errs[rank])
				holds(t, d, out[rank], sumOf2(1))
			}
		})
	}
}

// An operation that is captured into a graph is done for the host, and runs with
// every replay.
func TestGPUGraph(t *testing.T) {
	r := gpus(t, 2)
	for name, onCaller := range map[string]bool{"join": false, "caller": true} {
		t.Run(name, func(t *testing.T) {
			gs := r.groups(t, 2, func(cfg *Config) { cfg.OnCaller, cfg.Blocking = onCaller, true })
			defer closeAll(t, gs)
			var b [2]device.Buffer
			for rank := range gs {
				b[rank] = floats(t, r.devs[rank], 1000, mine(rank))
			}
			errs := make([]error, 2)
			each(2, func(rank int) { errs[rank] = replay(t.Context(), gs[rank], r.streams[rank], b[rank], onCaller) })
			for rank, d := range r.devs {
				require.NoError(t, errs[rank])
				holds(t, d, b[rank], sumOf2(8)) // one eager call, then three replays, each of which doubles
			}
		})
	}
}

func replay(ctx context.Context, g *processgroup.Group, s *cuda.Stream, b device.Buffer, onCaller bool) error {
	if err := g.AllReduce(b, goccl.Sum).Wait(ctx); err != nil { // connects
		return err
	}
	var w processgroup.Work
	graph, err := s.Capture(func() error {
		w = g.AllReduce(b, goccl.Sum)
		if onCaller {
			return nil
		}
		return w.Join(s)
	})
	if err != nil {
		return err
	}
	defer graph.Close()
	if err := w.Wait(ctx); err != nil {
		return fmt.Errorf("the captured operation: %w", err)
	}
	x, err := graph.Instantiate()
	if err != nil {
		return err
	}
	defer x.Close()
	for range 3 {
		sec, err := s.Enter()
		if err != nil {
			return err
		}
		err = sec.Replay(x)
		sec.Leave()
		if err != nil {
			return err
		}
	}
	return s.Sync(ctx)
}

// A rank that met the others and does not go on is named, in bounded time, and
// what NCCL had begun is undone.
func TestGPUInitNamesTheMissing(t *testing.T) {
	r := gpus(t, 2)
	id := root(t, 2)
	idle := newControl(member{group: "g", rank: 1, size: 2}, new(callLog))
	met := make(chan error, 1)
	go func() {
		met <- idle.meet(t.Context(), id, Config{Rank: 1, Size: 2, Timeout: time.Minute}, hello{Version: 22809, GPU: "GPU-1"})
	}()
	// It takes part in the exchange of NCCL's id and never calls NCCL.
	go func() {
		if err := <-met; err == nil {
			_, _ = idle.exchange(context.Background(), nil)
		}
	}()
	lib, err := libnccl.Open(r.library)
	require.NoError(t, err)
	if lib.Version()/100 != 228 {
		t.Skip("the idle rank says that it has 2.28")
	}
	_, err = New(t.Context(), id, Config{Rank: 0, Size: 2, Name: "g", Device: r.devs[0], Library: r.library, Timeout: 3 * time.Second})
	require.ErrorIs(t, err, goccl.ErrTimeout)
	require.ErrorContains(t, err, "missing rank 1; these ranks did not begin NCCL's init")
	require.NoError(t, idle.close())
}

func TestGPUSplit(t *testing.T) {
	r := gpus(t, 2)
	for name, blocking := range map[string]bool{"background": false, "blocking": true} {
		t.Run(name, func(t *testing.T) {
			id := root(t, 2)
			swapped := root(t, 2)
			parents, children, errs := make([]*Backend, 2), make([]*Backend, 2), make([]error, 2)
			each(2, func(rank int) {
				cfg := Config{Rank: rank, Size: 2, Name: "p", Device: r.devs[rank], Library: r.library, Timeout: 50 * time.Second, Blocking: blocking}
				if parents[rank], errs[rank] = New(t.Context(), id, cfg); errs[rank] != nil {
					return
				}
				cfg.Name, cfg.Rank = "swapped", 1-rank
				if children[rank], errs[rank] = Split(t.Context(), parents[rank], 3, -rank, swapped, cfg); errs[rank] != nil {
					return
				}
				if rank == 1 { // in none of the groups
					errs[rank] = parents[rank].SitOut(t.Context())
					return
				}
				cfg.Name, cfg.Rank, cfg.Size = "alone", 0, 1
				var alone *Backend
				if alone, errs[rank] = Split(t.Context(), parents[rank], 0, 0, id, cfg); errs[rank] == nil {
					errs[rank] = alone.Close()
				}
			})
			for _, err := range errs {
				require.NoError(t, err)
			}
			gs := []*processgroup.Group{nil, nil}
			for rank, b := range children {
				n, err := b.gpu.comm.Rank()
				require.NoError(t, err)
				require.Equal(t, 1-rank, n)
				gs[rank] = processgroup.New(processgroup.Config{Name: "swapped", Rank: 1 - rank, Size: 2, Backend: b, Control: b.Control()}).On(r.streams[rank])
			}
			var bufs [2]device.Buffer
			each(2, func(rank int) {
				bufs[rank] = floats(t, r.devs[rank], 100, mine(rank))
				errs[rank] = gs[rank].Broadcast(bufs[rank], 0).Wait(t.Context())
			})
			for rank, d := range r.devs {
				require.NoError(t, errs[rank])
				holds(t, d, bufs[rank], mine(1)) // rank 0 of the group is rank 1 of its parent
			}
			closeAll(t, gs)
			each(2, func(rank int) { errs[rank] = parents[rank].Close() })
			require.Equal(t, make([]error, 2), errs)
		})
	}
}

func TestGPUSettings(t *testing.T) {
	r := gpus(t, 2)
	gs := r.groups(t, 2, func(cfg *Config) {
		cfg.Settings.Int(libnccl.MinCTAs, 2)
		cfg.Settings.Int(libnccl.MaxCTAs, 4)
		cfg.Settings.Text(libnccl.CommName, "named")
	})
	buf := floats(t, r.devs[0], 10, mine(0))
	host := device.SliceOf(make([]float32, 10))
	err := gs[0].AllReduce(host, goccl.Sum).Wait(t.Context())
	require.ErrorIs(t, err, goccl.ErrUnsupported)
	require.ErrorContains(t, err, "use a group of backend ccl")
	require.Error(t, gs[0].AllReduce(buf, goccl.Sum).Wait(t.Context()), "the group has failed")
	each(2, func(rank int) { _ = gs[rank].Close() })

	cfg := Config{Size: 1, Device: r.devs[0], Library: r.library}
	cfg.Settings.Int(libnccl.MinCTAs, 5)
	_, err = New(t.Context(), root(t, 1), cfg)
	require.ErrorIs(t, err, goccl.ErrInvalid)
	cfg = Config{Size: 2, Device: r.devs[0], Library: "/none/libnccl.so.2"}
	_, err = New(t.Context(), root(t, 2), cfg)
	require.ErrorContains(t, err, "pip package nvidia-nccl-cu12")
}

// Buffers of the group are registered with NCCL, in windows where it has them.
func TestGPUBuffers(t *testing.T) {
	r := gpus(t, 2)
	lib, err := libnccl.Open(r.library)
	require.NoError(t, err)
	for _, symmetric := range []bool{false, true} {
		if symmetric && !lib.Windows() {
			continue
		}
		gs := r.groups(t, 2, func(cfg *Config) { cfg.Symmetric = symmetric })
		errs := make([]error, 2)
		each(2, func(rank int) {
			b, err := gs[rank].NewBuffer(1<<18, goccl.F32)
			if err == nil && b.Device != r.devs[rank].ID() {
				err = fmt.Errorf("the buffer lies on %v", b.Device)
			}
			for range 3 {
				if err == nil {
					err = gs[rank].AllReduce(b, goccl.Sum).Wait(t.Context())
				}
			}
			if err == nil {
				err = gs[rank].FreeBuffer(b)
			}
			errs[rank] = err
		})
		for _, err := range errs {
			require.NoError(t, err)
		}
		closeAll(t, gs)
	}
}
