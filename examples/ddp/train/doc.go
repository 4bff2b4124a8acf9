// Package train is data-parallel training of the digits model as one rank sees
// it: which samples a step takes, how they are augmented, the update, and the
// comparison of parameters. What computes is an Engine, on the CPU or elsewhere.
// Communication is not in it: between Gradients and Update the caller averages the
// gradients over the ranks.
//
// Everything random comes from (seed, epoch, sample index), never from the rank
// or the number of ranks. N ranks and one rank with the same global batch
// therefore see the same samples in the same step and differ only in the order
// in which float32 sums are taken.
package train
