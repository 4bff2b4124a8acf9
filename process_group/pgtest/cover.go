package pgtest

import "math/rand/v2"

// cover returns rows that choose one value for each factor so that every pair of
// values of two factors stands in some row. levels holds the number of values of
// each factor. It is greedy: each row begins with a pair that is not covered yet
// and takes, factor by factor, the value that covers most.
func cover(levels []int, rng *rand.Rand) [][]int {
	left := newPairs(levels)
	var rows [][]int
	for len(left.open) > 0 {
		row := make([]int, len(levels))
		for f := range row {
			row[f] = -1
		}
		p := left.any(rng)
		row[p.f], row[p.g] = p.a, p.b
		for _, f := range rng.Perm(len(levels)) {
			if row[f] < 0 {
				row[f] = left.best(row, f, levels[f], rng)
			}
		}
		left.remove(row)
		rows = append(rows, row)
	}
	return rows
}

// pair is value a of factor f together with value b of factor g; f < g.
type pair struct{ f, a, g, b int }

// pairs is the set of pairs that no row has yet; order makes a choice from it
// depend on the seed alone.
type pairs struct {
	open  map[pair]bool
	order []pair
}

func newPairs(levels []int) *pairs {
	ps := &pairs{open: make(map[pair]bool)}
	for f := range levels {
		for g := f + 1; g < len(levels); g++ {
			for a := range levels[f] {
				for b := range levels[g] {
					p := pair{f, a, g, b}
					ps.open[p] = true
					ps.order = append(ps.order, p)
				}
			}
		}
	}
	return ps
}

// any returns an open pair.
func (ps *pairs) any(rng *rand.Rand) pair {
	for {
		i := rng.IntN(len(ps.order))
		p := ps.order[i]
		if ps.open[p] {
			return p
		}
		last := len(ps.order) - 1
		ps.order[i] = ps.order[last]
		ps.order = ps.order[:last]
	}
}

// best returns the value of factor f that covers most with what row has.
func (ps *pairs) best(row []int, f, levels int, rng *rand.Rand) int {
	best, most := 0, -1
	for _, a := range rng.Perm(levels) {
		n := 0
		for g, b := range row {
			if b >= 0 && g != f && ps.open[ordered(f, a, g, b)] {
				n++
			}
		}
		if n > most {
			best, most = a, n
		}
	}
	return best
}

func (ps *pairs) remove(row []int) {
	for f := range row {
		for g := f + 1; g < len(row); g++ {
			delete(ps.open, pair{f, row[f], g, row[g]})
		}
	}
}

func ordered(f, a, g, b int) pair {
	if f < g {
		return pair{f, a, g, b}
	}
	return pair{g, b, f, a}
}
