// Package goccl is the vocabulary of the library: element types, reductions,
// collectives, algorithms, protocols and errors. It imports the standard
// library only, so that every layer can speak it.
//
// goccl is the communication backend of training frameworks written in Go. A
// framework hands it tensors; it moves and reduces them between ranks,
// overlapped with compute. There are three doors, each usable alone:
//
//   - package dist joins a job and package process_group gives asynchronous
//     collectives on it;
//   - package bucket averages gradients in buckets while backward runs;
//   - package comm is an NCCL-like communicator on raw buffers.
//
// ARCHITECTURE.md has the layers, the import graph and the life of one
// AllReduce.
package goccl
