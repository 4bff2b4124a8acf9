package autotune

import (
	"github.com/goccl/goccl/autotune/model"
)

// Fit returns a profile of a machine: constants fitted to the points, which stay
// near those of prior where the points say little, and the fastest choice of
// every point as the table. A choice of the table is at least margin times faster
// than what the fitted constants choose (1.05 is five percent): below that the
// prediction stands, since it holds between the measured sizes as well.
func Fit(points []Point, prior *Profile, m Machine, margin float64) (*Profile, error) {
	p := &Profile{Version: ProfileVersion, Machine: m, Constants: map[string]model.Constants{}}
	for c := range model.Class(model.NumClasses) {
		samples, err := samplesOf(points, c.String())
		if err != nil {
			return nil, err
		}
		k := prior.Constants[c.String()]
		if len(samples) > 0 {
			k = model.Fit(samples, k)
		}
		p.Constants[c.String()] = k
	}
	t, err := New(p)
	if err != nil {
		return nil, err
	}
	for i := range points {
		v, err := t.Judge(&points[i])
		if err != nil {
			return nil, err
		}
		if v.US == 0 || v.Loss() >= margin {
			r, err := points[i].Request()
			if err != nil {
				return nil, err
			}
			p.Best = append(p.Best, NewBest(QueryOf(r), model.Choice(v.Best)))
		}
	}
	return p, p.check()
}

// samplesOf are the measurements of a class. What is far slower than the fastest
// counts little: no tuner would choose it.
func samplesOf(points []Point, class string) ([]model.Sample, error) {
	var out []model.Sample
	for i := range points {
		p := &points[i]
		if p.Class != class {
			continue
		}
		r, err := p.Request()
		if err != nil {
			return nil, err
		}
		_, least, err := p.best()
		if err != nil {
			return nil, err
		}
		for j := range p.Times {
			c, err := p.Times[j].choice()
			if err != nil {
				return nil, err
			}
			if us := p.Times[j].US; us > 0 {
				out = append(out, model.Sample{Query: QueryOf(r), Choice: c, US: us, Weight: least / us, Barrier: p.Barrier})
			}
		}
	}
	return out, nil
}
