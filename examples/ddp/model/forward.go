package model

import (
	"fmt"
	"math"

	"gorgonia.org/tensor"
)

// Forward computes the logits of the batch in Input.
func (m *MLP) Forward() error {
	m.ready = false
	for i := range m.layers {
		l := &m.layers[i]
		// The inputs come first: about half of them are zero after the activation,
		// and the matrix product skips zeros of its left operand.
		if _, err := tensor.MatMul(l.in, m.params[l.w].Value, tensor.WithReuse(l.out)); err != nil {
			return fmt.Errorf("model: forward of layer %d: %w", i+1, err)
		}
		addBias(floats(l.out), floats(m.params[l.b].Value), !l.last)
	}
	return nil
}

// addBias adds b to every row of x and applies the activation if asked.
func addBias(x, b []float32, activate bool) {
	for ; len(x) >= len(b) && len(b) > 0; x = x[len(b):] {
		row := x[:len(b)]
		for j, v := range b {
			s := row[j] + v
			if activate {
				s = smoothReLU(s)
			}
			row[j] = s
		}
	}
}

// Loss returns the mean softmax cross-entropy of the last Forward against
// labels, one class per sample, and how many samples have their label as the
// highest logit. It prepares Backward.
func (m *MLP) Loss(labels []uint8) (loss float64, correct int, err error) {
	if len(labels) != m.batch {
		return 0, 0, fmt.Errorf("model: %d labels for a batch of %d", len(labels), m.batch)
	}
	classes := m.Classes()
	l := &m.layers[len(m.layers)-1]
	logits, grad := floats(l.out), floats(l.dout)
	for i, label := range labels {
		if int(label) >= classes {
			return 0, 0, fmt.Errorf("model: sample %d has label %d: there are %d classes", i, label, classes)
		}
		row, drow := logits[i*classes:(i+1)*classes], grad[i*classes:(i+1)*classes]
		best := argmax(row)
		if best == int(label) {
			correct++
		}
		loss += crossEntropy(row, drow, int(label), best, m.batch)
	}
	m.ready = true
	return loss / float64(m.batch), correct, nil
}

// crossEntropy returns -log softmax(row)[label] and sets grad to its gradient
// divided by batch. Exponentials are taken relative to the largest logit, row[best],
// so that none overflows.
func crossEntropy(row, grad []float32, label, best, batch int) float64 {
	var sum float64
	for j, v := range row {
		e := math.Exp(float64(v) - float64(row[best]))
		grad[j] = float32(e)
		sum += e
	}
	for j := range grad {
		grad[j] = float32(float64(grad[j]) / sum / float64(batch))
	}
	grad[label] -= float32(1 / float64(batch))
	return math.Log(sum) - float64(row[label]-row[best])
}

// argmax is the index of the largest element, the first of equals.
func argmax(row []float32) int {
	best := 0
	for j, v := range row {
		if v > row[best] {
			best = j
		}
	}
	return best
}

// Predict writes the class with the highest logit of the last Forward for each
// sample of the batch into out, as far as out reaches.
func (m *MLP) Predict(out []uint8) {
	classes, logits := m.Classes(), m.Logits()
	for i := range min(len(out), m.batch) {
		out[i] = uint8(argmax(logits[i*classes : (i+1)*classes]))
	}
}
