package report

import (
	"encoding/json"
	"fmt"
	"io"
)

// document is the shape of the JSON: names and units are for other programs and
// stay as they are.
type document struct {
	Ranks            int      `json:"ranks"`
	Cores            int      `json:"cores"`
	Device           string   `json:"device,omitempty"`  // the name of the GPUs
	Backend          string   `json:"backend,omitempty"` // what averaged gradients there
	Epochs           int      `json:"epochs"`
	Steps            int      `json:"steps"`
	Batch            int      `json:"batch"`
	Seed             uint64   `json:"seed"`
	Accuracy         float64  `json:"accuracy"` // 0 to 1
	Loss             float64  `json:"loss"`
	ParamsEqual      bool     `json:"params_equal"`
	ParamsHash       string   `json:"params_hash"`       // of rank 0
	SingleRankDiff   *float64 `json:"single_rank_diff"`  // at the end; null: not measured
	SingleRankEarly  *float64 `json:"single_rank_early"` // after single_rank_steps
	SingleRankSteps  *int     `json:"single_rank_steps"`
	Overlap          *overlap `json:"overlap"`
	SamplesPerSecond float64  `json:"samples_per_s"`
	BlockedMS        float64  `json:"blocked_ms"`
	ExposedMS        *float64 `json:"exposed_ms"`
	Buckets          []Bucket `json:"buckets"`
}

// overlap is what communication during the backward pass changes.
type overlap struct {
	Equal         bool    `json:"equal"` // same parameters with and without it
	Steps         int     `json:"steps"` // after so many steps
	StepMS        float64 `json:"step_ms"`
	StepMSWithout float64 `json:"step_ms_without"`
	Ratio         float64 `json:"ratio"` // of the two
}

// WriteJSON writes r as one JSON object: ranks, epochs, accuracy (0 to 1), loss,
// params_equal, single_rank_diff, samples_per_s, blocked_ms, exposed_ms, buckets
// and more. What was not measured is null.
func (r *Report) WriteJSON(w io.Writer) error {
	d := document{
		Ranks: r.Run.Ranks, Cores: r.Run.Cores, Device: r.Run.Device, Backend: r.Run.Backend, Epochs: r.Run.Epochs, Steps: r.Run.Steps, Batch: r.Run.Batch, Seed: r.Run.Seed,
		Accuracy: r.Accuracy, Loss: r.Loss, ParamsEqual: r.ParamsEqual(), SamplesPerSecond: r.SamplesPerSecond(),
		BlockedMS: r.BlockedMS, ExposedMS: r.ExposedMS, Buckets: r.Buckets,
	}
	if len(r.Hashes) > 0 {
		d.ParamsHash = r.Hashes[0]
	}
	if s := r.SingleRank; s != nil {
		d.SingleRankDiff, d.SingleRankEarly, d.SingleRankSteps = &s.End, &s.Early, &s.Steps
	}
	if o := r.Overlap; o != nil {
		d.Overlap = &overlap{o.Hash == o.Other, o.Steps, o.StepMS, o.OtherMS, o.Ratio(r.Run.NoOverlap)}
		if r.Run.NoOverlap {
			d.Overlap.StepMS, d.Overlap.StepMSWithout = o.OtherMS, o.StepMS
		}
	}
	if d.Buckets == nil {
		d.Buckets = []Bucket{} // an empty list, not null
	}
	out, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return fmt.Errorf("report: %w: a figure is not finite", err)
	}
	_, err = w.Write(append(out, '\n'))
	return err
}
