package goccl

import "fmt"

// Collective names an operation that all ranks of a communicator take part in,
// or one side of a point-to-point transfer. The zero value is invalid.
type Collective uint8

// The collectives. Barrier is an AllReduce of nothing with a name of its own.
const (
	AllReduce Collective = iota + 1
	Reduce
	Broadcast
	AllGather
	ReduceScatter
	AllToAll
	Gather
	Scatter
	SendRecv
	Barrier

	numCollectives = iota + 1
)

var collectiveNames = [numCollectives]string{"", "allreduce", "reduce", "broadcast", "allgather",
	"reducescatter", "alltoall", "gather", "scatter", "sendrecv", "barrier"}

// Valid reports whether c is one of the constants.
func (c Collective) Valid() bool { return c > 0 && c < numCollectives }

// String returns the lower-case name, for example "allreduce".
func (c Collective) String() string {
	if !c.Valid() {
		return fmt.Sprintf("collective(%d)", uint8(c))
	}
	return collectiveNames[c]
}

// Reduces reports whether c combines elements, so that a ReduceOp means something.
func (c Collective) Reduces() bool { return c == AllReduce || c == Reduce || c == ReduceScatter }

// Rooted reports whether c has a root rank.
func (c Collective) Rooted() bool {
	return c == Reduce || c == Broadcast || c == Gather || c == Scatter
}

// ParseCollective returns the collective with the given name.
func ParseCollective(name string) (Collective, error) {
	for i, n := range collectiveNames {
		if i > 0 && n == name {
			return Collective(i), nil
		}
	}
	return 0, fmt.Errorf("%w: no collective is called %q (allreduce reduce broadcast allgather reducescatter alltoall gather scatter sendrecv barrier)", ErrInvalid, name)
}

// Algorithm is the pattern in which a collective moves data.
type Algorithm uint8

// The algorithms. Auto leaves the choice to the tuner.
const (
	Auto    Algorithm = iota
	Ring              // neighbours on a cycle; least bytes per rank
	Tree              // double binary tree; logarithmic steps
	OneShot           // every rank sends all it has to every rank; one step
	TwoShot           // reduce-scatter then all-gather, each in one step
	Direct            // every pair exchanges its part directly (all-to-all, gather, scatter, send/recv)

	numAlgorithms = iota
)

var algorithmNames = [numAlgorithms]string{"auto", "ring", "tree", "oneshot", "twoshot", "direct"}

// Valid reports whether a is one of the constants.
func (a Algorithm) Valid() bool { return a < numAlgorithms }

// String returns the lower-case name, for example "ring".
func (a Algorithm) String() string {
	if !a.Valid() {
		return fmt.Sprintf("algorithm(%d)", uint8(a))
	}
	return algorithmNames[a]
}

// ParseAlgorithm returns the algorithm with the given name.
func ParseAlgorithm(name string) (Algorithm, error) {
	for i, n := range algorithmNames {
		if n == name {
			return Algorithm(i), nil
		}
	}
	return 0, fmt.Errorf("%w: no algorithm is called %q (auto ring tree oneshot twoshot direct)", ErrInvalid, name)
}

// Protocol is how the arrival of data is signalled.
type Protocol uint8

// The protocols. AutoProto leaves the choice to the tuner.
const (
	AutoProto Protocol = iota
	LL                 // the flag travels in the line that holds the data: lowest latency
	Simple             // bulk data, then one counter: highest bandwidth

	numProtocols = iota
)

var protocolNames = [numProtocols]string{"auto", "ll", "simple"}

// Valid reports whether p is one of the constants.
func (p Protocol) Valid() bool { return p < numProtocols }

// String returns the lower-case name, for example "simple".
func (p Protocol) String() string {
	if !p.Valid() {
		return fmt.Sprintf("protocol(%d)", uint8(p))
	}
	return protocolNames[p]
}

// ParseProtocol returns the protocol with the given name.
func ParseProtocol(name string) (Protocol, error) {
	for i, n := range protocolNames {
		if n == name {
			return Protocol(i), nil
		}
	}
	return 0, fmt.Errorf("%w: no protocol is called %q (auto ll simple)", ErrInvalid, name)
}
