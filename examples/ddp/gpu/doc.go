// Package gpu is the digits model on an NVIDIA GPU: the layers, parameters and steps of
// package model, with the kernels of device/kernels and the driver of device/cuda.
//
// All work of an Engine goes to one stream, in order, and the host goes ahead: Gradients
// returns when the kernels have been queued, and ready(i) says that the kernel which
// writes gradient i has been. Whoever averages gradients orders after the stream. Each
// gradient is written straight to where SetGrad says, such as a view of a bucket.
//
// Sums run in a fixed order that the number of samples does not change, so all ranks and
// repetitions give the same bits. They are not those of package model: products are
// fused with sums here.
package gpu
