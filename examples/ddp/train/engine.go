package train

// Engine computes for a Worker: a model, its gradients and its optimiser, on one fixed
// number of samples. What a call starts may go on after it has returned, and the next
// call comes after it; Loss, Predict and Values wait. It is not safe for concurrent use.
type Engine interface {
	// Batch is the number of samples.
	Batch() int
	// Input is where the samples of the next Gradients or Predict go: Batch × Inputs
	// values, row after row, and a label for each.
	Input() (images []float32, labels []uint8, err error)
	// Gradients computes the mean loss and its gradients. It calls ready(i) in this
	// goroutine when parameter i's gradient is final, or will be after the work that has
	// been started, each i once, from the last index to 0. started, if not nil, is called
	// between the forward and the backward pass.
	Gradients(started func(), ready func(i int)) error
	// Loss is the mean loss of the last Gradients.
	Loss() (float64, error)
	// Update moves the parameters along their gradients.
	Update(rate float64) error
	// Predict writes the most likely class of each sample into guess, as far as that
	// reaches.
	Predict(guess []uint8) error
	// Values are the parameters in forward order. They may be the engine's own memory:
	// do not change them.
	Values() ([]Value, error)
}

// Value is one parameter as it stands: row-major.
type Value struct {
	Name  string
	Shape []int
	Data  []float32
}
