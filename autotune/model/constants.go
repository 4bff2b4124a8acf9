package model

// Constants are the measured costs of one class of connections. Copy, Reduce and
// the like are for one rank with a core of its own; what all ranks of a host do
// together is divided among its cores by the model.
type Constants struct {
	Op      float64 `json:"op_us"`             // to begin, run and end a Program
	Fused   float64 `json:"fused_us"`          // the same for a one-shot reduction through scratch
	Step    float64 `json:"step_us"`           // until a rank sees a message that it waits for
	Bulk    float64 `json:"bulk_us"`           // more for a Simple message, whose flag and payload lie on different lines
	Yield   float64 `json:"yield_us"`          // such a wait where ranks outnumber cores, for each rank that a core has
	Message float64 `json:"message_us"`        // to post or to take a message, without the wait
	Copy    float64 `json:"copy_us_per_mib"`   // to copy a MiB
	Reduce  float64 `json:"reduce_us_per_mib"` // to combine, for a MiB of operands and results together
	Spill   float64 `json:"spill_us_per_mib"`  // more for a MiB through slots that outgrow the cache
	Far     float64 `json:"far_us_per_mib"`    // more for a MiB of user memory beyond the cache
	Meet    float64 `json:"meet_us"`           // a meeting of all ranks before and after an operation on windows
	Cache   int64   `json:"cache_bytes"`       // of a core, taken as given
}

// NumTerms is the number of terms of a prediction.
const NumTerms = 11

// Vector returns the constants in the order of the terms.
func (k *Constants) Vector() [NumTerms]float64 {
	return [NumTerms]float64{k.Op, k.Fused, k.Step, k.Bulk, k.Yield, k.Message, k.Copy, k.Reduce, k.Spill, k.Far, k.Meet}
}

// WithVector returns k with the constants of v.
func (k Constants) WithVector(v [NumTerms]float64) Constants {
	k.Op, k.Fused, k.Step, k.Bulk, k.Yield, k.Message = v[0], v[1], v[2], v[3], v[4], v[5]
	k.Copy, k.Reduce, k.Spill, k.Far, k.Meet = v[6], v[7], v[8], v[9], v[10]
	return k
}

// Valid reports whether a prediction from k is positive and finite for every
// buffer.
func (k *Constants) Valid() bool {
	for _, v := range k.Vector() {
		if !(v >= 0 && v <= maxConstant) {
			return false
		}
	}
	return k.Op > 0 && k.Fused > 0 && k.Cache > 0 && k.Cache <= 1<<40
}

// maxConstant is a second; what costs more was not measured.
const maxConstant = 1e6
