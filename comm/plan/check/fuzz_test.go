package check

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/plan"
)

// FuzzCheck edits Programs at many places, or makes them up altogether, and sees
// that the checker ends and never panics. What it says must be a violation of a
// known kind.
func FuzzCheck(f *testing.F) {
	all := bases(f)
	for i := range uint64(8) {
		f.Add(i, uint8(i), uint8(1+i))
	}
	f.Fuzz(func(t *testing.T, seed uint64, base, edits uint8) {
		rng := seeded(seed)
		var ps []*plan.Program
		if edits == 0 {
			ps = invent(rng)
		} else {
			ps = cloneAll(all[int(base)%len(all)])
			for range edits % 32 {
				if p := ps[rng.IntN(len(ps))]; p != nil {
					edit(p, rng)
				}
			}
		}
		opt := Options{MaxSteps: 1 << 14, Thin: true}
		for _, err := range []error{Check(ps, opt), CheckSequence([][]*plan.Program{ps, ps}, opt)} {
			if err != nil {
				require.NotEmpty(t, kindOf(t, err))
			}
		}
		for _, p := range ps {
			if p != nil && plan.Validate(p) == nil {
				require.NotEmpty(t, p.String())
			}
		}
	})
}

// invent makes Programs of random parts: mostly well-formed, hardly ever right.
func invent(rng *rand.Rand) []*plan.Program {
	n := 1 + rng.IntN(3)
	k := key(goccl.Collective(1+rng.IntN(10)), goccl.Direct, goccl.LL, 1, 0, 1)
	g := plan.Geom{Base: plan.BaseOf(k.Coll), Grain: 64, ChunkBytes: 64, Slices: 1 + rng.IntN(2), D: 1}
	if g.Base == plan.Whole {
		g.D = 1 + rng.IntN(3)
	}
	var ps []*plan.Program
	for r := range n {
		s := newScript(k, r, n, g)
		s.p.Sems = 2
		var cs []plan.Conn
		for q := range n {
			if q != r {
				cs = append(cs, plan.Conn{Peer: int32(q), Send: true}, plan.Conn{Peer: int32(q)})
				s.p.Sigs = append(s.p.Sigs, plan.Sig{Peer: int32(q), Out: true}, plan.Sig{Peer: int32(q)})
			}
		}
		s.conns(cs...)
		s.p.Rows[0].SigN = uint16(len(s.p.Sigs))
		for range 1 + rng.IntN(2) {
			s.lane(func() { inventLane(s, n, rng) })
		}
		ps = append(ps, s.p)
	}
	return ps
}

func inventLane(s script, n int, rng *rand.Rand) {
	depth := 0
	for range 1 + rng.IntN(12) {
		switch op := plan.Code(1 + rng.IntN(8)); op {
		case plan.MOVE:
			s.move(rng.IntN(2), 0, ops(inventPlace(s, n, rng, true)), ops(inventPlace(s, n, rng, false)))
		case plan.LOOP, plan.REP:
			if depth == 0 {
				s.op(op)
				depth++
				if op == plan.REP {
					s.p.Code[len(s.p.Code)-1].Chunk = s.lit(rng.IntN(5) - 1)
				}
			}
		case plan.END:
			if depth > 0 {
				s.op(op)
				depth--
			}
		case plan.SIGNAL, plan.WAIT:
			if w := 2 * rng.IntN(n); w+1 < len(s.p.Sigs) {
				s.word(op, w+int(op-plan.SIGNAL))
			}
		default:
			s.word(op, rng.IntN(2))
		}
	}
	for ; depth > 0; depth-- {
		s.op(plan.END)
	}
}

func inventPlace(s script, n int, rng *rand.Rand, src bool) plan.Operand {
	c := 2 * rng.IntN(max(n-1, 1))
	switch x := rng.IntN(4); {
	case x == 0 && src && n > 1:
		return recv(c + 1)
	case x == 0 && n > 1:
		return send(c)
	case x == 1 && src:
		return s.scratch(rng.IntN(n))
	case x == 1:
		return s.peerScratch(rng.IntN(n))
	case src:
		return s.in(rng.IntN(2))
	default:
		return s.out(rng.IntN(2))
	}
}
