package main

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/dist"
)

// talk is how ranks tell each other a few figures. The order of operations of the
// group that averages gradients is the reducer's, so these have another one; where the
// backend exchanges small things beside its operations, the group itself does.
type talk struct{ *dist.Group }

// newTalk makes the talk of all ranks of g. All call it.
func newTalk(ctx context.Context, g *dist.Group) (talk, error) {
	if g.Backend() != "ccl" {
		return talk{g}, nil
	}
	job, _ := dist.JobOf(ctx)
	ranks := make([]int, g.Size())
	for r := range ranks {
		ranks[r] = r
	}
	other, err := job.New(ctx, "talk", ranks)
	return talk{other}, err
}

// gather gives the figures of every rank to all: row r is those of rank r.
func (t talk) gather(ctx context.Context, own ...float64) ([][]float64, error) {
	var data []byte
	for _, v := range own {
		data = binary.LittleEndian.AppendUint64(data, math.Float64bits(v))
	}
	parts, err := t.Exchange(ctx, data)
	if err != nil {
		return nil, err
	}
	rows := make([][]float64, len(parts))
	for r, part := range parts {
		for len(part) >= 8 {
			rows[r] = append(rows[r], math.Float64frombits(binary.LittleEndian.Uint64(part)))
			part = part[8:]
		}
		if len(rows[r]) != len(own) {
			return nil, goccl.ErrMismatch
		}
	}
	return rows, nil
}

// fold combines one figure of each rank.
func (t talk) fold(ctx context.Context, own float64, f func(a, b float64) float64) (float64, error) {
	rows, err := t.gather(ctx, own)
	if err != nil {
		return 0, err
	}
	all := rows[0][0]
	for _, row := range rows[1:] {
		all = f(all, row[0])
	}
	return all, nil
}

func sum(a, b float64) float64 { return a + b }

func most(a, b float64) float64 { return max(a, b) }
