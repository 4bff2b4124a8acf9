package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/goccl/goccl/autotune"
	"github.com/goccl/goccl/comm"
)

// report prints what a tuner with the constants of p, without its table, chooses
// at the points, and what that loses against the fastest.
func (o *tuneOptions) report(w io.Writer, p *autotune.Profile, points []autotune.Point) error {
	bare := *p
	bare.Best = nil
	t, err := autotune.New(&bare)
	if err != nil {
		return err
	}
	b := &strings.Builder{}
	m := p.Machine
	fmt.Fprintf(b, "# %s, %d cores, %s/%s, %s; %s\n", m.CPU, m.Cores, m.OS, m.Arch, m.Go, m.Note)
	fmt.Fprintf(b, "# %-8s %-14s %5s %9s  %-26s %10s %10s  %-26s %10s %6s\n", "class", "collective", "ranks", "bytes", "chosen", "predicted", "measured", "fastest", "measured", "loss")
	var losses []float64
	for i := range points {
		v, err := t.Judge(&points[i])
		if err != nil {
			return err
		}
		pt := &points[i]
		coll := pt.Coll
		if pt.Window {
			coll += "(window)"
		}
		loss := "-"
		if v.US > 0 {
			losses = append(losses, v.Loss())
			loss = fmt.Sprintf("%.2f", v.Loss())
		}
		fmt.Fprintf(b, "  %-8s %-17s %2d %9d  %-26s %10.2f %10.2f  %-26s %10.2f %6s\n", pt.Class, coll, pt.Ranks, pt.Bytes, short(v.Chosen), v.Predicted, v.US, short(v.Best), v.BestUS, loss)
		if o.explain {
			if err := explain(b, t, pt); err != nil {
				return err
			}
		}
	}
	slices.Sort(losses)
	if n := len(losses); n > 0 {
		within := func(f float64) float64 { i, _ := slices.BinarySearch(losses, f); return 100 * float64(i) / float64(n) }
		fmt.Fprintf(b, "# loss of the choice by constants alone over %d points (%d not measured): within 1.1 x of the fastest at %.0f %%, 1.3 x at %.0f %%, median %.2f, worst %.2f\n",
			n, len(points)-n, within(1.1), within(1.3), losses[n/2], losses[n-1])
	}
	fmt.Fprintf(b, "# the profile's table overrules it at %d points\n", len(p.Best))
	_, err = io.WriteString(w, b.String())
	return err
}

// explain prints all candidates of a point.
func explain(b *strings.Builder, t *autotune.Tuner, p *autotune.Point) error {
	r, err := p.Request()
	if err != nil {
		return err
	}
	for _, c := range t.Explain(r) {
		measured := "not measured"
		for _, x := range p.Times {
			if x.Algo == c.Algo.String() && x.Proto == c.Proto.String() && x.Channels == c.Channels && x.Chunk == c.Chunk {
				measured = fmt.Sprintf("measured %.2f us", x.US)
			}
		}
		fmt.Fprintf(b, "      %v, %s\n", c, measured)
	}
	return nil
}

func short(d comm.Decision) string {
	s := fmt.Sprintf("%v/%v", d.Algo, d.Proto)
	if d.Channels > 1 {
		s += fmt.Sprintf("*%d", d.Channels)
	}
	if d.Chunk > 0 {
		s += fmt.Sprintf("/%dK", d.Chunk>>10)
	}
	return s
}
