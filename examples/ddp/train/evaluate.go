package train

import "github.com/goccl/goccl/examples/ddp/mnist"

// correct counts the right guesses of e for every size-th image of set, from rank
// on.
func correct(e Engine, scaler *Scaler, set *mnist.Set, rank, size int) (int, error) {
	guess := make([]uint8, e.Batch())
	right := 0
	for first := rank; first < set.Len(); first += size * e.Batch() {
		input, labels, err := e.Input()
		if err != nil {
			return 0, err
		}
		clear(labels)
		n := 0
		for i := first; i < set.Len() && n < e.Batch(); i += size {
			scaler.Fill(input[n*Inputs:(n+1)*Inputs], set.Image(i), Shift{})
			n++
		}
		// Beyond n the batch holds stale samples: they are not looked at.
		if err := e.Predict(guess[:n]); err != nil {
			return 0, err
		}
		for k, g := range guess[:n] {
			if g == set.Label(first+k*size) {
				right++
			}
		}
	}
	return right, nil
}
