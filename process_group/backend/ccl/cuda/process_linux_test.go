package cuda

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/device/cuda"
	processgroup "github.com/goccl/goccl/process_group"
	"github.com/goccl/goccl/process_group/backend/ccl"

	"github.com/goccl/goccl/internal/leak"
	"github.com/goccl/goccl/internal/testproc"
)

func TestMain(m *testing.M) {
	testproc.Enter(map[string]testproc.Rank{"killed": killedRank})
	if _, err := os.Stat("/dev/nvidiactl"); err == nil {
		os.Exit(m.Run()) // the driver keeps threads and files to the end of the process
	}
	os.Exit(leak.Check(m))
}

// child is a rank process on its GPU.
type child struct {
	*testproc.Child
	dev    *cuda.Device
	stream *cuda.Stream
	group  *processgroup.Group
	mem    device.Memory
}

// enter joins the group of the rank processes, whose meeting rank 0 opens.
func enter(ctx context.Context, c *testproc.Child) (*child, error) {
	var id comm.UniqueID
	if c.Rank == 0 {
		root, err := comm.ListenRoot(ctx, "127.0.0.1:0", comm.RootOptions{Size: c.Size})
		if err != nil {
			return nil, err
		}
		go root.Serve(ctx) //nolint:errcheck // it ends with the process
		text, err := root.ID().MarshalText()
		if err != nil {
			return nil, err
		}
		if err := c.Ready(string(text)); err != nil {
			return nil, err
		}
	} else if err := c.Ready("no root"); err != nil {
		return nil, err
	}
	if err := id.UnmarshalText([]byte(c.Next())); err != nil {
		return nil, err
	}
	drv, err := cuda.Load()
	if err != nil {
		return nil, err
	}
	x := &child{Child: c}
	if x.dev, err = drv.Open(c.Rank); err != nil {
		return nil, err
	}
	if x.stream, err = x.dev.Stream(0); err != nil {
		return nil, err
	}
	if x.mem, err = x.dev.Alloc(1 << 20); err != nil {
		return nil, err
	}
	b, err := ccl.New(ctx, id, ccl.Config{Rank: c.Rank, Size: c.Size, Name: "g", Device: x.dev, Timeout: time.Minute})
	if err != nil {
		return nil, err
	}
	x.group = processgroup.New(processgroup.Config{Name: "g", Rank: c.Rank, Size: c.Size, Backend: b, Control: b.Control(), Timeout: time.Minute})
	return x, nil
}

func (x *child) allReduce(n int) processgroup.Work {
	b := device.FromPointer(x.mem.Addr(), n, goccl.F32, x.dev.ID(), x.mem)
	return x.group.AllReduce(b, goccl.Sum, processgroup.OnStream(x.stream))
}

// killedRank meets the others once; then rank 0 starts an operation to which rank 1
// does not come, because it is killed.
func killedRank(c *testproc.Child) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	x, err := enter(ctx, c)
	if err != nil {
		return err
	}
	for _, n := range []int{2, 100_000} { // by both protocols
		if err := x.allReduce(n).Wait(ctx); err != nil {
			return err
		}
	}
	if err := c.Ready("met"); err != nil {
		return err
	}
	if c.Rank == 1 {
		c.Next() // it is killed here
		return errors.New("still there")
	}
	w := x.allReduce(100_000)
	if done, err := w.Test(); done {
		return fmt.Errorf("it ended without rank 1: %v", err)
	}
	if err := c.Ready("waits"); err != nil {
		return err
	}
	began := time.Now()
	err = w.Wait(ctx)
	took := time.Since(began)
	if !errors.Is(err, goccl.ErrPeerLost) {
		return fmt.Errorf("want %w, got %w", goccl.ErrPeerLost, err)
	}
	// The context is as good as before: memory, copies and streams work.
	data, back := []byte("still here"), make([]byte, 10)
	if err := x.dev.Write(ctx, x.mem.Addr(), data); err != nil {
		return err
	}
	if err := x.dev.Read(ctx, back, x.mem.Addr()); err != nil {
		return err
	}
	if string(back) != string(data) {
		return fmt.Errorf("read back %q", back)
	}
	return c.Ready(fmt.Sprintf("%v after %v", err, took.Round(time.Millisecond)))
}

// TestGPUKilledRank kills a rank while another's kernel waits for it.
func TestGPUKilledRank(t *testing.T) {
	gpus(t, 2, false)
	g := testproc.Start(t, "killed", 2, testproc.Options{})
	id := g.WaitReady(t)[0]
	for _, p := range g.Procs {
		p.Send(t, id)
	}
	require.Equal(t, []string{"met", "met"}, g.WaitReady(t))
	require.Equal(t, "waits", g.Procs[0].Next(t))
	g.Procs[1].Kill(t)
	line := g.Procs[0].Next(t)
	t.Log(line)
	require.Contains(t, line, "rank 1")
	require.NoError(t, g.Procs[0].Wait(t), "%s", g.Procs[0].Output())
}

// Two communicators on the same GPUs, whose kernels start in different orders on
// different ranks, both go on: each has room beside the other.
func TestGPUTwoGroupsInBothOrders(t *testing.T) {
	r := gpus(t, 2, false)
	a, b := r.groups(t, 2), r.groups(t, 2)
	mem := make([]device.Memory, 4)
	for i := range mem {
		m, err := r.devs[i/2].Alloc(64 << 20)
		require.NoError(t, err)
		mem[i] = m
		t.Cleanup(func() { require.NoError(t, m.Free()) })
	}
	errs := make([]error, 2)
	for round := range 20 {
		done := make(chan struct{}, 2)
		for rank := range 2 {
			go func() {
				defer func() { done <- struct{}{} }()
				n := []int{3, 5000, 1 << 24}[round%3]
				first, second := a[rank], b[rank]
				if rank == 1 {
					first, second = second, first
				}
				of := func(i int) device.Buffer {
					return device.FromPointer(mem[2*rank+i].Addr(), n, goccl.F32, r.devs[rank].ID(), nil)
				}
				ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
				defer cancel()
				w, v := first.AllReduce(of(0), goccl.Sum), second.AllReduce(of(1), goccl.Sum)
				errs[rank] = errors.Join(errs[rank], processgroup.WaitAll(ctx, w, v))
			}()
		}
		<-done
		<-done
		require.NoError(t, errors.Join(errs...), "round %d", round)
	}
	for _, gs := range [][]*processgroup.Group{a, b} {
		closed := make(chan error, 2)
		for _, g := range gs {
			go func() { closed <- g.Close() }()
		}
		require.NoError(t, errors.Join(<-closed, <-closed))
	}
}
