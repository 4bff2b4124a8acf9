package bucket

// mode is how the machine behaves; it changes only between steps.
type mode struct {
	findUnused bool // finish fills in what is missing
	hold       bool // launch nothing before finish
	noSync     bool // gradients are accumulated, not reduced
	record     bool // note the ready order and ask for one rebuild
}

// actionKind is what an action asks for.
type actionKind uint8

const (
	actLaunch   actionKind = iota + 1 // start the reduction of a bucket
	actZero                           // the parameter was not used: its slot is zero
	actFill                           // copy the parameter's accumulated gradient into its slot
	actCopyBack                       // the bucket holds the result
	actDone                           // all buckets do
	actRebuild                        // the ready order is known: lay the buckets out anew
	actFail                           // the step cannot be completed: machine.err
)

// action is one thing to do; index is a bucket or a parameter.
type action struct {
	kind  actionKind
	index int
}
