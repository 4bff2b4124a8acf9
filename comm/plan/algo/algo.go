package algo

import (
	"fmt"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/graph"
	"github.com/goccl/goccl/comm/plan"
)

// build makes one rank's Program for a valid key on at least two ranks.
type build func(k plan.Key, rank int, g *graph.Graph) *plan.Program

const (
	maxAlgorithms  = 16
	maxCollectives = 16
)

var builders [maxAlgorithms][maxCollectives]build

func register(a goccl.Algorithm, c goccl.Collective, f build) { builders[a][c] = f }

// MaxRanks is the most ranks for which a Program can be built: operand counts
// of an instruction are bytes, and rings need none of that, so the bound is
// Rings' own.
const MaxRanks = 32767

// maxFan is the most operands of one instruction.
const maxFan = 255

// maxParts is the most parts of one kind in a Program: their indices have 16
// bits.
const maxParts = 1<<16 - 1

// Supports reports why there is no Program for collective c by algorithm a over
// n ranks; nil when there is one.
func Supports(c goccl.Collective, a goccl.Algorithm, n int) error {
	switch {
	case !c.Valid() || !a.Valid() || a == goccl.Auto || builders[a][c] == nil:
		return fmt.Errorf("%w: %v has no %v algorithm (it has %s)", goccl.ErrUnsupported, c, a, list(c))
	case n > MaxRanks:
		return fmt.Errorf("%w: %d ranks; at most %d", goccl.ErrUnsupported, n, MaxRanks)
	case (a == goccl.OneShot || a == goccl.TwoShot || a == goccl.Direct) && c != goccl.SendRecv && n > maxFan:
		return fmt.Errorf("%w: %v by %v over %d ranks; at most %d", goccl.ErrUnsupported, c, a, n, maxFan)
	}
	return nil
}

// Algorithms lists the algorithms that collective c has.
func Algorithms(c goccl.Collective) []goccl.Algorithm {
	var as []goccl.Algorithm
	for a := range builders {
		if c.Valid() && builders[a][c] != nil {
			as = append(as, goccl.Algorithm(a))
		}
	}
	return as
}

func list(c goccl.Collective) string {
	s := ""
	for _, a := range Algorithms(c) {
		s += " " + a.String()
	}
	if s == "" {
		return "none"
	}
	return s[1:]
}

// Build makes rank's Program for key k on the shape g. It is pure: the same
// arguments give the same Program.
func Build(k plan.Key, rank int, g *graph.Graph) (*plan.Program, error) {
	if err := check(k, rank, g.NRanks); err != nil {
		return nil, err
	}
	if g.NRanks == 1 {
		return single(k), nil
	}
	if err := Supports(k.Coll, k.Algo, g.NRanks); err != nil {
		return nil, err
	}
	if k.Window == plan.WindowBoth && !g.Mapped {
		return nil, fmt.Errorf("%w: window %v without memory that all ranks map", goccl.ErrUnsupported, k.Window)
	}
	p := builders[k.Algo][k.Coll](k, rank, g)
	if most := max(len(p.Code), len(p.Opnds), len(p.Exprs), len(p.Conns), len(p.Sigs)); most > maxParts {
		return nil, fmt.Errorf("%w: %v over %d ranks in %d channels takes %d parts of one kind; at most %d (use fewer channels)", goccl.ErrUnsupported,
			k.Coll, g.NRanks, k.Channels, most, maxParts)
	}
	return p, nil
}

func check(k plan.Key, rank, n int) error {
	switch {
	case !k.Coll.Valid() || !k.DType.Valid() || !k.Proto.Valid() || k.Proto == goccl.AutoProto:
		return fmt.Errorf("%w: key %v is not complete", goccl.ErrInvalid, k)
	case k.Channels == 0 || k.Chunk == 0 || int64(k.Chunk)%Grain(k.Proto) != 0:
		return fmt.Errorf("%w: key %v: want at least one channel and a chunk that is a multiple of %d", goccl.ErrInvalid, k, Grain(k.Proto))
	case rank < 0 || rank >= n:
		return fmt.Errorf("%w: rank %d of %d", goccl.ErrInvalid, rank, n)
	case k.Coll.Rooted() && (k.Root < 0 || int(k.Root) >= n):
		return fmt.Errorf("%w: root %d of %d ranks", goccl.ErrInvalid, k.Root, n)
	case k.Coll == goccl.SendRecv && (k.Root < 0 || int(k.Root) >= n || (n > 1 && int(k.Root) == rank)):
		return fmt.Errorf("%w: rank %d and peer %d of %d ranks", goccl.ErrInvalid, rank, k.Root, n)
	case k.Coll.Reduces() && !k.DType.Reducible():
		return fmt.Errorf("%w: %v of %v", goccl.ErrUnsupported, k.Coll, k.DType)
	}
	return nil
}

// Grain returns the bytes to which a protocol cuts buffers: a cache line for LL,
// whole vectors of any length for Simple. Both are multiples of every element.
func Grain(p goccl.Protocol) int64 {
	if p == goccl.LL {
		return 64
	}
	return 512
}

// geom is the geometry of a key with d chunks per iteration.
func geom(k plan.Key, base plan.Base, d int) plan.Geom {
	return plan.Geom{Base: base, Grain: Grain(k.Proto), ChunkBytes: int64(k.Chunk), Slices: 1, D: d}
}

// single is any collective of one rank: the input is the output.
func single(k plan.Key) *plan.Program {
	k.Channels = 1
	b := newBuilder(k, 0, 1, geom(k, plan.Whole, 1))
	c := b.lit(0)
	b.lane(1, 0, func() {
		b.loop()
		b.last(c, from{in(c)}, to{out(c)})
		b.end()
	})
	b.p.Rendezvous = true
	return b.p
}
