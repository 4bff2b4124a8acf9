package train

import "fmt"

// Config is what all ranks must agree on.
type Config struct {
	Seed   uint64
	Epochs int
	Batch  int     // samples in a step, over all ranks together
	LR     float64 // peak learning rate
}

// Momentum is that of the gradient descent; see SGD.
const Momentum = 0.9

const warmupSteps = 10

// StepsPerEpoch is how many whole batches n samples give. What is left over waits
// for another epoch's order.
func (c Config) StepsPerEpoch(n int) int { return n / c.Batch }

// check says what is wrong with c for n training samples and size ranks.
func (c Config) check(n, rank, size int) error {
	switch {
	case size < 1 || rank < 0 || rank >= size:
		return fmt.Errorf("train: rank %d of %d", rank, size)
	case c.Batch < 1 || c.Batch > n:
		return fmt.Errorf("train: batch %d of %d samples", c.Batch, n)
	case c.Batch%size != 0:
		return fmt.Errorf("train: batch %d is not a multiple of %d ranks", c.Batch, size)
	case c.Epochs < 1:
		return fmt.Errorf("train: %d epochs", c.Epochs)
	}
	return nil
}
