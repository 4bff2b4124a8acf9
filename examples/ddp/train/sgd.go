package train

import (
	"math"

	"github.com/goccl/goccl/examples/ddp/model"
)

// SGD is stochastic gradient descent with momentum:
// v ← momentum·v + gradient, value ← value - rate·v.
type SGD struct {
	momentum float32
	velocity [][]float32
}

// NewSGD makes the state for params, all zero.
func NewSGD(params []model.Param, momentum float64) *SGD {
	s := &SGD{momentum: float32(momentum), velocity: make([][]float32, len(params))}
	for i, p := range params {
		s.velocity[i] = make([]float32, p.Count())
	}
	return s
}

// Step moves every value along its gradient with the given rate.
func (s *SGD) Step(params []model.Param, rate float64) {
	r := float32(rate)
	for i, p := range params {
		value, grad, v := p.Value.Float32s(), p.Grad.Float32s(), s.velocity[i]
		for j, g := range grad {
			v[j] = s.momentum*v[j] + g
			value[j] -= r * v[j]
		}
	}
}

// Schedule is the learning rate of each step: it rises linearly to Peak over the
// first Warmup steps and then falls along half a cosine to zero at Steps
// (Loshchilov and Hutter 2017).
type Schedule struct {
	Peak          float64
	Warmup, Steps int
}

// Rate is the learning rate of step, counted from 0.
func (s Schedule) Rate(step int) float64 {
	if step < s.Warmup {
		return s.Peak * float64(step+1) / float64(s.Warmup+1)
	}
	t := float64(step-s.Warmup) / float64(max(1, s.Steps-s.Warmup))
	return s.Peak * (1 + math.Cos(math.Pi*min(1, t))) / 2
}
