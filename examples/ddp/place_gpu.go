package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/device/cuda"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/examples/ddp/gpu"
	"github.com/goccl/goccl/examples/ddp/options"
	"github.com/goccl/goccl/examples/ddp/report"
	_ "github.com/goccl/goccl/process_group/backend/ccl/cuda" // -backend ccl
	_ "github.com/goccl/goccl/process_group/backend/nccl"     // -backend nccl
)

// missing is what this machine lacks for what the command line asks for.
type missing struct{ error }

func (m missing) Unwrap() error { return m.error }

// gpus lists the GPUs that this process sees, at least one.
func gpus() (*cuda.Driver, []cuda.Info, error) {
	drv, err := cuda.Load()
	if err != nil {
		return nil, nil, missing{fmt.Errorf("ddp: -device cuda: %w\n"+
			"It needs an NVIDIA GPU and its driver, 525 or newer: libcuda.so.1, which comes with the driver, where the dynamic linker finds it; "+
			"in a container, start that with --gpus all. -device host needs neither", err)}
	}
	all, err := drv.Devices()
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("ddp: -device cuda: no GPU is visible; look at CUDA_VISIBLE_DEVICES")
	}
	if err != nil {
		return nil, nil, missing{err}
	}
	return drv, all, nil
}

// onGPU is the place of a rank with a GPU.
type onGPU struct {
	gpu     *gpu.GPU
	backend string
}

var _ place = (*onGPU)(nil)

// openGPU opens the GPU of that index; share lets several ranks have one.
func openGPU(o options.Options, index int, share bool) (place, error) {
	drv, all, err := gpus()
	if err != nil {
		return nil, err
	}
	if share {
		index %= len(all)
	}
	if index >= len(all) {
		return nil, missing{fmt.Errorf("ddp: rank %d of this machine has no GPU, there are %d: give -ranks %d, or let ranks share one with GOCCL_SHARE_GPU=1 where the backend can",
			index, len(all), len(all))}
	}
	g, err := gpu.Open(drv, index)
	if err != nil {
		return nil, err
	}
	return &onGPU{gpu: g, backend: o.Backend}, nil
}

func (p *onGPU) join(cfg *dist.Config) { cfg.Backend, cfg.Device = p.backend, p.gpu.Device() }

func (p *onGPU) describe(run *report.Run) {
	run.Device, run.Backend = p.gpu.Device().Info().Name, p.backend
}

func (p *onGPU) close() error { return p.gpu.Close() }

func (p *onGPU) engine(ctx context.Context, seed uint64, batch int) (engine, error) {
	e, err := gpu.NewEngine(ctx, p.gpu, batch, seed)
	if err != nil {
		return nil, err
	}
	return gpuModel{e}, nil
}

func (p *onGPU) averager(e engine) (averager, error) {
	m, ok := e.(gpuModel)
	if !ok {
		return nil, errors.New("ddp: a model of another place")
	}
	return newStreamed(p.gpu.Device(), m.Stream())
}

// gpuModel is a model whose gradients are written to their places in the buckets by
// its kernels.
type gpuModel struct{ *gpu.Engine }

func (m gpuModel) value(i int) (device.Buffer, error) { return m.Value(i), nil }

func (m gpuModel) setGrad(i int, view device.Buffer) error { return m.SetGrad(i, view) }

func (m gpuModel) close() error { return m.Close() }
