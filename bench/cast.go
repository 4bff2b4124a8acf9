package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm"
	"github.com/goccl/goccl/device/cuda"
	"github.com/goccl/goccl/dist"
	processgroup "github.com/goccl/goccl/process_group"
	"github.com/goccl/goccl/process_group/backend/ccl"
	_ "github.com/goccl/goccl/process_group/backend/ccl/cuda" // operations on GPUs
	"github.com/goccl/goccl/process_group/backend/nccl"
	"github.com/goccl/goccl/process_group/backend/nccl/libnccl"
)

// cast is the systems of one run on one rank, and where their buffers lie.
type cast struct {
	sides []*side
	place place
	undo  []func() error // in the order of making
}

func (c *cast) close() error {
	err := c.place.reset()
	for i := len(c.undo) - 1; i >= 0; i-- {
		err = errors.Join(err, c.undo[i]())
	}
	return err
}

// cast makes the sides that the options ask for. g is the library's own group, over
// which the ranks meet in any case.
func (o *options) cast(ctx context.Context, g *dist.Group) (*cast, error) {
	if !o.onGPU() {
		return &cast{sides: []*side{{name: "ccl", g: g}}, place: onHost{}}, nil
	}
	c := &cast{}
	dev, err := o.device(localRank(g))
	if err != nil {
		return nil, err
	}
	c.place = &onGPU{dev: dev}
	c.undo = append(c.undo, dev.Close)
	stream, err := dev.Stream(0)
	if err == nil {
		c.undo = append(c.undo, stream.Close)
		err = o.join(ctx, g, c, dev, stream)
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// join makes the sides on GPUs.
func (o *options) join(ctx context.Context, g *dist.Group, c *cast, dev *cuda.Device, stream *cuda.Stream) error {
	if o.backend == "ccl" {
		if err := o.joinOwn(ctx, g, c, dev, stream); err != nil {
			return err
		}
	}
	if o.backend == "nccl" {
		if err := o.joinNCCL(ctx, g, c, stream, &side{name: "nccl"}, 0); err != nil {
			return err
		}
	}
	if o.vs == "nccl" {
		for _, ctas := range append([]int{0}, o.ctas...) {
			s := &side{name: "nccl direct", direct: &direct{}}
			if ctas > 0 {
				s.name = fmt.Sprintf("nccl direct %d CTAs", ctas)
			}
			if err := o.joinNCCL(ctx, g, c, stream, s, ctas); err != nil {
				return err
			}
		}
	}
	return o.clocks(c, dev)
}

// clocks gives each side a clock of the GPU, where that is asked for.
func (o *options) clocks(c *cast, dev *cuda.Device) error {
	if !o.events {
		return nil
	}
	for _, s := range c.sides {
		clock, err := newClock(dev)
		if err != nil {
			return err
		}
		c.undo = append(c.undo, clock.close)
		s.clock = clock
	}
	return nil
}

// joinNCCL completes a side on NCCL, with as many CTAs, or, with 0, as NCCL likes.
func (o *options) joinNCCL(ctx context.Context, g *dist.Group, c *cast, stream *cuda.Stream, s *side, ctas int) error {
	dev := stream.Device()
	cfg := nccl.Config{Rank: g.Rank(), Size: g.Size(), Name: "bench", Device: dev, Library: o.library, OnCaller: true, Timeout: 2 * time.Minute}
	if ctas > 0 {
		cfg.Settings.Int(libnccl.MinCTAs, ctas)
		cfg.Settings.Int(libnccl.MaxCTAs, ctas)
	}
	id, err := o.meet(ctx, g, c)
	if err != nil {
		return err
	}
	b, err := nccl.New(ctx, id, cfg)
	if err != nil {
		return err
	}
	if ctas == 0 {
		s.about = fmt.Sprintf("NCCL %v at %s, %s, NCCL_NVLS_ENABLE=%s", b.Library().Version(), b.Library().Name(), dev.Info().Name, os.Getenv("NCCL_NVLS_ENABLE"))
	}
	if s.direct != nil {
		s.direct.comm = b.Comm()
	}
	group := processgroup.New(processgroup.Config{Name: s.name, Rank: g.Rank(), Size: g.Size(), Backend: b, Control: b.Control()})
	c.undo = append(c.undo, group.Close)
	s.g, s.stream = group.On(stream), stream
	c.sides = append(c.sides, s)
	return nil
}

// joinOwn makes the side of the library's own backend on GPUs.
func (o *options) joinOwn(ctx context.Context, g *dist.Group, c *cast, dev *cuda.Device, stream *cuda.Stream) error {
	id, err := o.meet(ctx, g, c)
	if err != nil {
		return err
	}
	b, err := ccl.New(ctx, id, ccl.Config{Rank: g.Rank(), Size: g.Size(), Name: "bench", Device: dev, InProcess: o.threads > 0, Timeout: 2 * time.Minute})
	if err != nil {
		return err
	}
	group := processgroup.New(processgroup.Config{Name: "ccl", Rank: g.Rank(), Size: g.Size(), Backend: b, Control: b.Control()})
	c.undo = append(c.undo, group.Close)
	c.sides = append(c.sides, &side{name: "ccl", about: dev.Info().Name, g: group.On(stream), stream: stream})
	return nil
}

// meet opens a rendezvous for one more group of the ranks of g.
func (o *options) meet(ctx context.Context, g *dist.Group, c *cast) (id comm.UniqueID, err error) {
	if g.Size() == 1 {
		return id, nil
	}
	var text []byte
	if g.Rank() == 0 {
		var root *comm.Root
		if root, err = comm.ListenRoot(ctx, "", comm.RootOptions{Size: g.Size()}); err != nil {
			return id, err
		}
		c.undo = append(c.undo, serve(ctx, root))
		if text, err = root.ID().MarshalText(); err != nil {
			return id, err
		}
	}
	all, err := g.Exchange(ctx, text)
	if err != nil {
		return id, err
	}
	return id, id.UnmarshalText(all[0])
}

// serve runs a rendezvous and returns how to end it: when all ranks have left, since
// those still there would else see rank 0 die.
func serve(ctx context.Context, root *comm.Root) func() error {
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = root.Serve(ctx) // ranks that do not come are named where they are missed
	}()
	return func() error {
		select {
		case <-served:
		case <-time.After(10 * time.Second):
		}
		return root.Close()
	}
}

// localRank is this rank's place on its machine, which is also its GPU.
func localRank(g *dist.Group) int {
	if id := dist.FromEnv().Identity; id != nil && id.LocalRank >= 0 {
		return id.LocalRank
	}
	return g.Rank()
}

// device opens the GPU of a rank.
func (o *options) device(local int) (*cuda.Device, error) {
	drv, err := cuda.Load()
	if err != nil {
		return nil, err
	}
	return drv.Open(local)
}

// absent says why what is asked for cannot be measured on this machine by so many
// ranks, before any of them starts.
func (o *options) absent(ranks int) error {
	if !o.onGPU() {
		return nil
	}
	if o.backend == "nccl" || o.vs == "nccl" {
		if _, err := libnccl.Open(o.library); err != nil {
			return err
		}
	}
	drv, err := cuda.Load()
	if err != nil {
		return err
	}
	all, err := drv.Devices()
	if err != nil {
		return err
	}
	if len(all) < ranks {
		return fmt.Errorf("%w: each of %d ranks needs a GPU, and %d are visible; -n sets the ranks", goccl.ErrUnsupported, ranks, len(all))
	}
	return nil
}

// multicastOff keeps NCCL from making multicast objects unless somebody asks for
// them: what leaves one behind blocks the fabric for others. Ranks inherit it.
func multicastOff() error {
	if _, set := os.LookupEnv("NCCL_NVLS_ENABLE"); set {
		return nil
	}
	return os.Setenv("NCCL_NVLS_ENABLE", "0")
}
