// Package model is a multilayer perceptron on gorgonia tensors, written out by
// hand: forward, loss and backward. It knows nothing about ranks.
//
// The backward pass goes from the last layer to the first and says of each
// parameter when its gradient is final, so that communication can start while
// the layers before it are still being computed. It writes every gradient into
// the memory that Param.Grad points to and never replaces that memory: a
// gradient may be a view into a communication bucket.
//
// All sums run in a fixed order, so the result depends on parameters and batch
// only, never on how goroutines are scheduled.
package model
