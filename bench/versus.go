package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// beginVersus writes the head of a comparison.
func (t *table) beginVersus(b *strings.Builder) error {
	fmt.Fprintf(b, "# sides take turns, batch by batch; ratio: %s's time over the other's in the same turn, median and the middle half\n#\n", t.sides[0].name)
	fmt.Fprintf(b, "# %10s %11s %6s %6s %5s %5s", "size", "count", "type", "redop", "root", "place")
	for i := range t.sides {
		fmt.Fprintf(b, "  | %9s %7s %6s", "time", "busbw", "#wrong")
		if i > 0 {
			fmt.Fprintf(b, " %17s", "ratio")
		}
	}
	fmt.Fprintf(b, "\n# %10s %11s %6s %6s %5s %5s", "(B)", "(elements)", "", "", "", "")
	for i, s := range t.sides {
		width := 24
		if i > 0 {
			width += 18
		}
		fmt.Fprintf(b, "  | %*s", width, s.name+" (us, GB/s)")
	}
	b.WriteString("\n")
	_, err := io.WriteString(t.w, b.String())
	return err
}

// versus prints one size of all sides.
func (t *table) versus(out, in []*row) error {
	b := &strings.Builder{}
	for _, rows := range [][]*row{out, in} {
		if rows == nil {
			continue
		}
		r := rows[0]
		where := "out"
		if r.InPlace {
			where = "in"
		}
		fmt.Fprintf(b, "  %10d %11d %6s %6s %5d %5s", r.Bytes, r.Count, r.DType, r.Redop, r.Root, where)
		for i, r := range rows {
			wrong := "N/A"
			if r.Wrong >= 0 {
				wrong = fmt.Sprint(r.Wrong)
			}
			fmt.Fprintf(b, "  | %9.2f %7.2f %6s", r.TimeUS, r.BusBW, wrong)
			if i > 0 {
				low, mid, high := ratio(rows[0].batches, r.batches)
				fmt.Fprintf(b, " %5.2f [%4.2f %4.2f]", mid, low, high)
			}
		}
		b.WriteString("\n")
	}
	_, err := io.WriteString(t.w, b.String())
	return err
}

// ratio compares times of two sides turn by turn and returns the quartiles.
func ratio(a, b []float64) (low, mid, high float64) {
	var rs []float64
	for i := range min(len(a), len(b)) {
		if b[i] > 0 {
			rs = append(rs, a[i]/b[i])
		}
	}
	if len(rs) == 0 {
		return 0, 0, 0
	}
	slices.Sort(rs)
	at := func(q float64) float64 { return rs[int(q*float64(len(rs)-1)+0.5)] }
	return at(0.25), at(0.5), at(0.75)
}
