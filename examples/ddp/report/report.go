// Package report says how a run of the example went: as text for a reader, as
// JSON for a program, and as a file of the final parameters.
package report

// Report is what a run found out. Pointers are nil where something was not
// measured, such as the comparison with one rank in a run that was cut short.
type Report struct {
	Run        Run
	Accuracy   float64  // correct test images, 0 to 1
	Loss       float64  // mean training loss of the last epoch
	Seconds    float64  // training time, without the runs made for comparison
	Hashes     []string // SHA-256 of the final parameters, one per rank
	SingleRank *Difference
	Overlap    *Overlap
	BlockedMS  float64  // mean time a rank waits for communication in a step
	ExposedMS  *float64 // what communication adds to a step: median over adjacent pairs
	Pairs      int      // how many pairs ExposedMS is the median of
	Buckets    []Bucket // in the order in which they are launched
}

// Run is what was run.
type Run struct {
	Ranks, Cores  int
	Epochs, Steps int
	Batch         int // over all ranks
	Train, Test   int // images
	Seed          uint64
	Link          string // empty: not shaped
	NoOverlap     bool
	Device        string // the name of the GPUs; empty: the CPU
	Backend       string // what averaged gradients there
}

// Difference compares the parameters of all ranks with those of one rank that
// trained on the same global batches: the largest absolute difference.
type Difference struct {
	Steps      int // steps after which Early was taken
	Early, End float64
}

// Overlap compares training that communicates during the backward pass with training
// that does so after it, over the first steps.
type Overlap struct {
	Steps           int     // after which the parameters are compared
	Hash, Other     string  // of the parameters then: the run's way, the other way
	StepMS, OtherMS float64 // median step time of each way
}

// Ratio is the time of a step with overlap divided by that of one without, 0 if it
// was not measured. noOverlap is Run.NoOverlap.
func (o *Overlap) Ratio(noOverlap bool) float64 {
	with, without := o.StepMS, o.OtherMS
	if noOverlap {
		with, without = without, with
	}
	if without <= 0 {
		return 0
	}
	return with / without
}

// Bucket is one communication bucket of the last step. Times are milliseconds
// since the backward pass began, on rank 0.
type Bucket struct {
	Bytes      int64    `json:"bytes"`
	Parameters []string `json:"parameters"`
	ReadyMS    float64  `json:"ready_ms"`
	LaunchedMS float64  `json:"launched_ms"`
	DoneMS     float64  `json:"done_ms"`
}

// ParamsEqual says that every rank ended with the same parameters.
func (r *Report) ParamsEqual() bool {
	for _, h := range r.Hashes {
		if h != r.Hashes[0] {
			return false
		}
	}
	return len(r.Hashes) > 0
}

// SamplesPerSecond is the training throughput over all ranks.
func (r *Report) SamplesPerSecond() float64 {
	if r.Seconds <= 0 {
		return 0
	}
	return float64(r.Run.Steps*r.Run.Batch) / r.Seconds
}
