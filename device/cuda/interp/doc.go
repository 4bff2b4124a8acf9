// Package interp is a CUDA device for package comm/exec/gpu: its memory, shared
// within a process and between processes, and the interpreter's kernels.
//
//	dev, err := driver.Open(0)
//	d := interp.New(dev)
//	rank, err := gpu.New(gpu.Config{Rank: r, Layout: gpu.DefaultLayout(n, dev.Info().SMs), Device: d})
//	// exchange rank.Handle() between all ranks
//	err = rank.Map(handles)
//	bound, err := rank.Bind(program)
//	err = bound.Launch(&args, stream)
//
// Several ranks of one process may use one GPU, each with a stream of its own.
package interp
