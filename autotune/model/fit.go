package model

import "math"

// Sample is one measurement.
type Sample struct {
	Query  Query
	Choice Choice
	US     float64 // microseconds; a sample that is not positive is left out
	Weight float64
	// Barrier says that the time is that of the operation and a barrier after it.
	Barrier bool
}

// terms are those of the operation and of the barrier.
func (s *Sample) terms(cache int64) [NumTerms]float64 {
	t := Terms(&s.Query, s.Choice, cache)
	if s.Barrier {
		q, c := BarrierOf(&s.Query)
		for i, v := range Terms(&q, c, cache) {
			t[i] += v
		}
	}
	return t
}

// Fit returns the constants that predict the samples best: with the least sum of
// squares of the logarithms of measured over predicted, so that half and double
// are equally wrong, and with no constant below zero. A constant that the samples
// say little of stays near that of prior.
//
// It is Gauss and Newton's method: the logarithm is taken as linear around the
// last answer, which gives a problem of non-negative least squares. The number of
// rounds is fixed, so the answer is a function of the samples alone.
func Fit(samples []Sample, prior Constants) Constants {
	x := prior.Vector()
	for range 30 {
		x = refine(samples, prior, x)
	}
	return prior.WithVector(x)
}

// pull is how much a sample's weight of the prior each constant keeps.
const pull = 1e-4

// refine is one round of Fit from x.
func refine(samples []Sample, prior Constants, x [NumTerms]float64) [NumTerms]float64 {
	var a [NumTerms][NumTerms]float64
	var b [NumTerms]float64
	total := 0.0
	for i := range samples {
		s := &samples[i]
		if !(s.US > 0) {
			continue
		}
		t := s.terms(prior.Cache)
		now := dot(t, x)
		// A sample far off counts no more than one that is off by a factor e: an
		// interruption must not bend everything.
		aim := 1 + min(max(math.Log(s.US/now), -1), 1)
		total += s.Weight
		for j := range t {
			row := t[j] / now
			b[j] += s.Weight * row * aim
			for l := range t {
				a[j][l] += s.Weight * row * t[l] / now
			}
		}
	}
	for j, p := range prior.Vector() {
		stay := pull * total / max(p*p, 1e-4)
		a[j][j] += stay
		b[j] += stay * p
	}
	return descend(&a, &b, x)
}

// floor is the least of each constant, in microseconds. Beginning and ending cost
// something, and no line of memory goes from core to core in less than 0.2 us on
// machines that we know; with few ranks the samples cannot tell the two apart.
var floor = [NumTerms]float64{0: 0.05, 1: 0.05, 2: 0.2}

// descend minimises the quadratic form of a and b one coordinate after another,
// with none below its floor.
func descend(a *[NumTerms][NumTerms]float64, b *[NumTerms]float64, x [NumTerms]float64) [NumTerms]float64 {
	for range 300 {
		for j := range x {
			if a[j][j] <= 0 {
				continue
			}
			g := b[j]
			for l := range x {
				if l != j {
					g -= a[j][l] * x[l]
				}
			}
			x[j] = min(max(g/a[j][j], floor[j]), maxConstant)
		}
	}
	return x
}
