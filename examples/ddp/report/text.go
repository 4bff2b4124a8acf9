package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// The largest differences from one rank that float32 sums in another order
// explain.
const (
	earlyBound = 1e-6
	endBound   = 1e-5
)

// WriteText writes r for a reader.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	r.writeSummary(&b)
	r.writeChecks(&b)
	r.writeTimes(&b)
	if err := writeBuckets(&b, r.Buckets); err != nil {
		return err
	}
	if r.Run.Device == "" && r.Run.Ranks > r.Run.Cores {
		fmt.Fprintf(&b, "\n%d ranks share %s here: they take turns, so times say nothing about scaling.\n",
			r.Run.Ranks, count(r.Run.Cores, "core"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Report) writeSummary(b *strings.Builder) {
	fmt.Fprintf(b, "accuracy         %.2f %% of %d test images (loss %.4f)\n", 100*r.Accuracy, r.Run.Test, r.Loss)
	fmt.Fprintf(b, "training         %s of %d images, %d steps of %d samples on %s: %.1f s, %.0f samples/s\n",
		count(r.Run.Epochs, "epoch"), r.Run.Train, r.Run.Steps, r.Run.Batch, count(r.Run.Ranks, "rank"),
		r.Seconds, r.SamplesPerSecond())
	if r.Run.Device != "" {
		fmt.Fprintf(b, "device           %s for each rank, gradients averaged by %s\n", r.Run.Device, r.Run.Backend)
	}
	if r.Run.Link != "" {
		fmt.Fprintf(b, "link             shaped to %s\n", r.Run.Link)
	}
}

func (r *Report) writeChecks(b *strings.Builder) {
	switch {
	case len(r.Hashes) == 0:
	case r.ParamsEqual():
		fmt.Fprintf(b, "parameters       %s on every rank\n", short(r.Hashes[0]))
	default:
		fmt.Fprintf(b, "parameters       DIFFER between ranks:\n")
		for rank, h := range r.Hashes {
			fmt.Fprintf(b, "                 rank %d %s\n", rank, short(h))
		}
	}
	if d := r.SingleRank; d != nil {
		fmt.Fprintf(b, "against one rank largest difference %.1e after %s (%s), %.1e at the end (%s)\n",
			d.Early, count(d.Steps, "step"), bound(d.Early, earlyBound), d.End, bound(d.End, endBound))
	}
	if o := r.Overlap; o != nil {
		r.writeOverlap(b, o)
	}
}

func (r *Report) writeOverlap(b *strings.Builder, o *Overlap) {
	verdict := fmt.Sprintf("the same parameters with and without after %s", count(o.Steps, "step"))
	if o.Hash != o.Other {
		verdict = fmt.Sprintf("OTHER PARAMETERS with than without after %s (%s, %s)", count(o.Steps, "step"), short(o.Hash), short(o.Other))
	}
	fmt.Fprintf(b, "overlap          %s\n", verdict)
	if ratio := o.Ratio(r.Run.NoOverlap); ratio > 0 {
		with, without := o.StepMS, o.OtherMS
		if r.Run.NoOverlap {
			with, without = without, with
		}
		fmt.Fprintf(b, "                 a step takes %.1f ms with and %.1f ms without: %.2f of it\n", with, without, ratio)
	}
}

func (r *Report) writeTimes(b *strings.Builder) {
	fmt.Fprintf(b, "blocked          %.1f ms a step: a rank waits for communication to end (mean over ranks)\n", r.BlockedMS)
	if r.ExposedMS != nil {
		fmt.Fprintf(b, "exposed          %.1f ms a step: with communication less the same step without it (median of %s)\n",
			*r.ExposedMS, count(r.Pairs, "pair"))
	}
}

// writeBuckets writes the table of buckets, nothing if there are none.
func writeBuckets(b *strings.Builder, buckets []Bucket) error {
	if len(buckets) == 0 {
		return nil
	}
	b.WriteString("\nGradient buckets of the last step on rank 0, ms since the backward pass began\n")
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "bucket\tbytes\tready\tlaunched\tdone\t  parameters\n")
	var total int64
	for i, k := range buckets {
		total += k.Bytes
		fmt.Fprintf(t, "%d\t%d\t%.2f\t%.2f\t%.2f\t  %s\n", i, k.Bytes, k.ReadyMS, k.LaunchedMS, k.DoneMS, strings.Join(k.Parameters, " "))
	}
	fmt.Fprintf(t, "total\t%d\t\n", total)
	return t.Flush()
}

func bound(v, limit float64) string {
	if v <= limit { // false for NaN
		return fmt.Sprintf("within %.0e", limit)
	}
	return fmt.Sprintf("ABOVE %.0e", limit)
}

// short is the start of a digest, enough to tell two apart by eye.
func short(hash string) string { return hash[:min(16, len(hash))] }

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
