package gpu

import (
	"errors"
	"fmt"

	"github.com/goccl/goccl/device/cuda"
	"github.com/goccl/goccl/device/kernels"
)

// GPU is a device with the kernels loaded.
type GPU struct {
	dev     *cuda.Device
	modules map[string]*cuda.Module
	kernels map[string]*cuda.Kernel
}

// Open opens the GPU of that index among those the process sees and loads the kernels.
func Open(drv *cuda.Driver, index int) (*GPU, error) {
	dev, err := drv.Open(index)
	if err != nil {
		return nil, err
	}
	g := &GPU{dev: dev, modules: map[string]*cuda.Module{}, kernels: map[string]*cuda.Kernel{}}
	for _, name := range []string{"mlp", "elementwise"} {
		if err := g.load(name); err != nil {
			return nil, errors.Join(err, g.Close())
		}
	}
	return g, nil
}

func (g *GPU) load(name string) error {
	image, err := kernels.Load(name, g.dev.Info().ComputeCap)
	if err != nil {
		return err
	}
	m, err := g.dev.LoadModule(image.Code)
	if err != nil {
		return fmt.Errorf("kernels %s for %s: %w", name, image.Target, err)
	}
	g.modules[name] = m
	return nil
}

// Device is the device, for whoever communicates.
func (g *GPU) Device() *cuda.Device { return g.dev }

// Close gives the device back. Engines and whatever else was made on it are closed
// before.
func (g *GPU) Close() error {
	var errs []error
	for _, m := range g.modules {
		errs = append(errs, m.Unload())
	}
	return errors.Join(append(errs, g.dev.Close())...)
}

// launch makes ready what l says, with args, which it copies.
func (g *GPU) launch(l kernels.Launch, args []byte) (*cuda.Launch, error) {
	k := g.kernels[l.Kernel]
	if k == nil {
		var err error
		if k, err = g.modules[l.Module].Kernel(l.Kernel); err != nil {
			return nil, err
		}
		g.kernels[l.Kernel] = k
	}
	shape := cuda.Shape{Grid: [3]int{int(l.Blocks)}, Block: [3]int{int(l.Threads)}}
	ready, err := k.NewLaunch(shape, len(args))
	if err != nil {
		return nil, err
	}
	copy(ready.Args(), args)
	return ready, nil
}
