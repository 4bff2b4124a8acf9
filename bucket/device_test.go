package bucket

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/device/host"
	"github.com/goccl/goccl/process_group"
	"github.com/goccl/goccl/process_group/backend/fake"
)

// rankOnDevice is what a rank of a test has.
type rankOnDevice struct {
	*processgroup.Group
	dev pretend
}

// onDevices runs fn on n ranks, each with a device, and returns their errors. Nothing
// may be left on the devices.
func onDevices(t *testing.T, n int, fn func(ctx context.Context, g rankOnDevice) error) []error {
	t.Helper()
	world, meet := fake.Connect(n).Backends(), &meeting{next: make([]int, n), rounds: map[int]*turn{}}
	devs, groups := make([]pretend, n), make([]*processgroup.Group, n)
	for r := range n {
		devs[r] = pretend{host.Open()}
		own, err := devs[r].NewStream(0)
		require.NoError(t, err)
		b := &queueing{Backend: world[r], rank: r, own: own, meet: meet, jobs: map[*processgroup.Op]*queued{}}
		groups[r] = processgroup.New(processgroup.Config{Name: "gpus", Rank: r, Size: n, Backend: b})
	}
	errs := runGroups(t, groups, func(ctx context.Context, g *processgroup.Group) error {
		return fn(ctx, rankOnDevice{g, devs[g.Rank()]})
	})
	for r, d := range devs {
		if errs[r] == nil {
			require.NoError(t, d.Close(), "rank %d", r)
		}
	}
	return errs
}

// there is a buffer of the pretended device over a slice, which stays reachable.
func there(s []float32) device.Buffer {
	b := device.SliceOf(s)
	b.Device = gpu0
	return b
}

// here is memory of the pretended device, for its streams and for looking at it when
// they are done.
func here(b device.Buffer) []float32 {
	b.Device = device.ID{}
	return device.View[float32](b)
}

// kernel queues f on s.
func kernel(s device.Stream, f func()) error { return s.(*host.Stream).Do(f) }

// deviceParams describes m as a model on the device.
func deviceParams(m *net, views bool) []Param {
	ps := m.params(views)
	for i := range ps {
		ps[i].Value = there(m.value[i])
		if !views {
			ps[i].Grad = there(m.grad[i])
		}
	}
	return ps
}

// gradientAt is where the gradient i of m is written and where its average comes.
func gradientAt(r *Reducer, m *net, i int) []float32 {
	if r.params[i].inView {
		return here(r.View(i))
	}
	return m.grad[i]
}

// queueBackward queues kernels that compute the gradients once gate is closed, on
// streams by turns, and announces them at once.
func queueBackward(r *Reducer, m *net, rank, step int, order []int, gate chan struct{}, streams ...device.Stream) error {
	for n, i := range order {
		s, to := streams[n%len(streams)], gradientAt(r, m, i)
		err := kernel(s, func() {
			<-gate
			for e := range to {
				to[e] = gradient(rank, step, i, e)
			}
		})
		if err == nil {
			err = r.Ready(i, processgroup.OnStream(s))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkOn compares the averages with their definition, on the stream.
func checkOn(r *Reducer, m *net, ranks, step int, s device.Stream, failed *error) error {
	for i := range m.sizes {
		at := gradientAt(r, m, i)
		err := kernel(s, func() {
			for e, got := range at {
				want := average(ranks, step, i, e)
				if d := got - want; d > 1e-5*want || d < -1e-5*want {
					*failed = fmt.Errorf("step %d, parameter %d, element %d: %v, want %v", step, i, e, got, want)
				}
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// The host is a step ahead of the device: kernels that write gradients run only after
// FinishOn has returned, and what is queued next on the stream sees averages. It goes
// on over a new layout, other layouts, and buckets of several streams.
func TestFinishOnOrdersStreams(t *testing.T) {
	for _, views := range []bool{true, false} {
		for _, several := range []int{1, 3} {
			t.Run(fmt.Sprintf("views %v, %d streams", views, several), func(t *testing.T) {
				for rank, err := range onDevices(t, 3, func(ctx context.Context, g rankOnDevice) error {
					return queueSteps(ctx, g, views, several)
				}) {
					require.NoError(t, err, "rank %d", rank)
				}
			})
		}
	}
}

func queueSteps(ctx context.Context, g rankOnDevice, views bool, several int) (err error) {
	m := newNet(sizes, g.Rank())
	cfg := small
	cfg.Device, cfg.SyncFrom = g.dev, 1
	r, err := New(ctx, g.Group, deviceParams(m, views), cfg)
	if err != nil {
		return err
	}
	for i := range m.value {
		if m.value[i][0] != float32(1000+10*i) {
			return fmt.Errorf("value %d begins with %v after the broadcast of rank 1", i, m.value[i][0])
		}
	}
	streams := make([]device.Stream, several)
	for k := range streams {
		if streams[k], err = g.dev.NewStream(0); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, streams[k].Close()) }()
	}
	s := streams[0]
	var failed error
	layouts := map[int]Layout{4: Hold(), 5: Cap(600, 1200), 6: Overlap()}
	for step := range 9 {
		if l, ok := layouts[step]; ok {
			if err := r.Apply(ctx, l); err != nil {
				return err
			}
		}
		gate := make(chan struct{})
		if step == 0 {
			close(gate) // the new layout waits for the device
		}
		if err := queueBackward(r, m, g.Rank(), step, shuffled(len(sizes), g.Rank(), step), gate, streams...); err != nil {
			return err
		}
		if err := r.FinishOn(s); err != nil {
			return err
		}
		if step > 0 {
			close(gate)
		}
		if err := checkOn(r, m, g.Size(), step, s, &failed); err != nil {
			return err
		}
		for _, other := range streams[1:] { // their next gradients come after the check
			e, err := s.Record()
			if err == nil {
				err = other.WaitEvent(e)
			}
			if err != nil {
				return err
			}
		}
		if step%3 == 2 {
			runtime.Gosched()
		}
	}
	if !r.Stats().Rebuilt || r.Stats().Step != 9 {
		return fmt.Errorf("stats: %+v", r.Stats())
	}
	return errors.Join(s.Sync(ctx), r.Close(), failed)
}

// Finish waits for the device: averages and copies are in place when it returns. Some
// gradients are missing on some ranks, one on all.
func TestFinishOnDevice(t *testing.T) {
	for _, views := range []bool{true, false} {
		for rank, err := range onDevices(t, 2, func(ctx context.Context, g rankOnDevice) error {
			m := newNet(sizes, g.Rank())
			cfg := small
			cfg.Device, cfg.FindUnused = g.dev, true
			r, err := New(ctx, g.Group, deviceParams(m, views), cfg)
			if err != nil {
				return err
			}
			s, err := g.dev.NewStream(0)
			if err != nil {
				return err
			}
			open := make(chan struct{})
			close(open)
			for step := range 4 {
				var order []int
				for i := range sizes {
					if i != 3 && (i != 5 || g.Rank() == 0) {
						order = append(order, i)
					}
				}
				if err := errors.Join(queueBackward(r, m, g.Rank(), step, order, open, s), r.Finish(ctx)); err != nil {
					return err
				}
				for _, i := range order {
					want := average(2, step, i, 0)
					if i == 5 {
						want = gradient(0, step, i, 0) / 2
					}
					if got := gradientAt(r, m, i)[0]; got != want {
						return fmt.Errorf("step %d: gradient %d is %v, want %v", step, i, got, want)
					}
				}
				if r.Used(3) || !r.Used(5) {
					return errors.New("3 is used by none, 5 by rank 0")
				}
			}
			return errors.Join(r.Close(), s.Close())
		}) {
			require.NoError(t, err, "rank %d, views %v", rank, views)
		}
	}
}

// Rank 1 runs out of input first, and averages go on over its zeros. Gradients are
// accumulated over two passes on the device.
func TestJoinAndNoSyncOnDevice(t *testing.T) {
	for rank, err := range onDevices(t, 2, func(ctx context.Context, g rankOnDevice) error {
		m := newNet([]int{5, 70}, g.Rank())
		r, err := New(ctx, g.Group, deviceParams(m, true), Config{Device: g.dev, Uneven: true, FirstBytes: 1})
		if err != nil {
			return err
		}
		s, err := g.dev.NewStream(0)
		if err != nil {
			return err
		}
		accumulate := func() error {
			for i := range m.sizes {
				to := gradientAt(r, m, i)
				err := kernel(s, func() { to[0] += 4 })
				if err = errors.Join(err, r.Ready(i, processgroup.OnStream(s))); err != nil {
					return err
				}
			}
			return nil
		}
		check := func(want float32) error {
			for i := range m.sizes {
				if got := gradientAt(r, m, i)[0]; got != want {
					return fmt.Errorf("rank %d: gradient %d is %v, want %v", g.Rank(), i, got, want)
				}
			}
			return nil
		}
		err = r.NoSync(func() error { return errors.Join(accumulate(), r.Finish(ctx)) })
		if err = errors.Join(err, accumulate(), r.Finish(ctx), check(8)); err != nil {
			return err
		}
		want := float32(8)
		for range 2 - 2*g.Rank() {
			want = (want + 4) / 2
			if err := errors.Join(accumulate(), r.Finish(ctx), check(want)); err != nil {
				return err
			}
		}
		steps := 0
		err = r.Join(ctx, func() error { steps++; return nil })
		if steps != 2*g.Rank() {
			err = errors.Join(err, fmt.Errorf("rank %d took part in %d steps", g.Rank(), steps))
		}
		return errors.Join(err, r.Close(), s.Close())
	}) {
		require.NoError(t, err, "rank %d", rank)
	}
}

// Close waits for what FinishOn left on the device, whose memory it frees.
func TestCloseWaitsForTheDevice(t *testing.T) {
	for rank, err := range onDevices(t, 2, func(ctx context.Context, g rankOnDevice) error {
		m := newNet(sizes, g.Rank())
		r, err := New(ctx, g.Group, deviceParams(m, true), Config{Device: g.dev, NoRebuild: true})
		if err != nil {
			return err
		}
		s, err := g.dev.NewStream(0)
		if err != nil {
			return err
		}
		gate, last, over := make(chan struct{}), make(chan struct{}), false
		err = errors.Join(queueBackward(r, m, g.Rank(), 0, shuffled(len(sizes), 0, 0), gate, s), r.FinishOn(s), kernel(s, func() { <-last; over = true }))
		if err != nil {
			return err
		}
		closed := make(chan error)
		go func() { closed <- r.Close() }()
		select {
		case err := <-closed:
			return fmt.Errorf("closed while gradients were being computed: %w", err)
		default:
		}
		close(gate)
		time.AfterFunc(20*time.Millisecond, func() { close(last) }) // the operations have long ended
		if err := <-closed; err != nil || !over {
			return fmt.Errorf("closed before the stream was done: %v, %w", over, err)
		}
		return s.Close()
	}) {
		require.NoError(t, err, "rank %d", rank)
	}
}

// Models that differ are found although the group moves no host memory; texts may be
// longer than one exchange.
func TestDifferentModelsOnDevices(t *testing.T) {
	for rank, err := range onDevices(t, 2, func(ctx context.Context, g rankOnDevice) error {
		m := newNet(make([]int, 6000), g.Rank())
		ps := deviceParams(m, true)
		for i := range ps {
			ps[i].Name += strings.Repeat("x", 200)
			ps[i].Value.Count = 1
			ps[i].Value.Addr = 0
		}
		ps[5999].Name = fmt.Sprintf("of rank %d", g.Rank())
		_, err := New(ctx, g.Group, ps, Config{Device: g.dev})
		return err
	}) {
		require.ErrorIs(t, err, goccl.ErrMismatch, "rank %d", rank)
		require.ErrorContains(t, err, `line 6000: rank 0 has "of rank 0" f32 x 1`)
		require.ErrorContains(t, err, `rank 1 has "of rank 1" f32 x 1`)
	}
}

func TestDeviceRefusals(t *testing.T) {
	for _, err := range onDevices(t, 1, func(ctx context.Context, g rankOnDevice) error {
		m := newNet(sizes, 0)
		open := func(cfg Config, ps []Param) (*Reducer, error) {
			groups := fake.Groups(1, processgroup.Config{})
			defer func() { _ = groups[0].Close() }()
			return New(ctx, groups[0], ps, cfg)
		}
		mixed := deviceParams(m, true)
		mixed[4].Value = device.SliceOf(m.value[4])
		for want, ps := range map[string][]Param{
			"the parameters are on cuda; give that device as Config.Device":                       deviceParams(m, true),
			`"layer0.weight" is on cuda and "layer4.weight" on host; a Reducer is for one device`: mixed,
		} {
			_, err := open(Config{}, ps)
			require.ErrorContains(t, err, strings.ReplaceAll(want, "cuda", gpu0.String()))
		}
		_, err := open(Config{Device: g.dev}, m.params(true))
		require.ErrorContains(t, err, "the parameters are in host memory")

		s, err := g.dev.NewStream(0)
		require.NoError(t, err)
		r, err := New(ctx, g.Group, deviceParams(m, true), Config{Device: g.dev, Uneven: true})
		require.NoError(t, err)
		require.ErrorIs(t, r.FinishOn(s), goccl.ErrUnsupported, "Uneven")
		require.ErrorIs(t, r.FinishOn(nil), goccl.ErrInvalid)
		require.ErrorContains(t, r.Ready(0), "announced with OnStream")
		require.NoError(t, errors.Join(r.Close(), s.Close()))
		return nil
	}) {
		require.NoError(t, err)
	}
	onRanks(t, 1, func(ctx context.Context, g *processgroup.Group) error {
		r, err := New(ctx, g, newNet(sizes, 0).params(true), small)
		require.NoError(t, err)
		d := host.Open()
		s, err := d.NewStream(0)
		require.NoError(t, err)
		require.ErrorIs(t, r.FinishOn(s), goccl.ErrUnsupported)
		return errors.Join(r.Close(), s.Close(), d.Close())
	})
}
