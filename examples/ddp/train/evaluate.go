package train

import (
	"github.com/goccl/goccl/examples/ddp/mnist"
	"github.com/goccl/goccl/examples/ddp/model"
)

// correct counts the right guesses of m for every size-th image of set, from rank
// on.
func correct(m *model.MLP, scaler *Scaler, set *mnist.Set, rank, size int) (int, error) {
	input := m.Input()
	guess := make([]uint8, m.Batch())
	right := 0
	for first := rank; first < set.Len(); first += size * m.Batch() {
		n := 0
		for i := first; i < set.Len() && n < m.Batch(); i += size {
			scaler.Fill(input[n*Inputs:(n+1)*Inputs], set.Image(i), Shift{})
			n++
		}
		if err := m.Forward(); err != nil {
			return 0, err
		}
		// Beyond n the batch holds stale samples: they are not looked at.
		m.Predict(guess[:n])
		for k, g := range guess[:n] {
			if g == set.Label(first+k*size) {
				right++
			}
		}
	}
	return right, nil
}
