package check

import "math/bits"

// hash is 128 bits.
type hash [2]uint64

// mix is an order-dependent combination of two hashes. Both halves go through
// 64x64 multiplications whose two halves are folded, as in wyhash.
func mix(a, b hash) hash {
	return hash{
		fold(a[0]^0x9e3779b97f4a7c15, b[0]^0xe7037ed1a0b428db) + fold(a[1]^0x8ebc6af09c88c6e3, b[1]^0x589965cc75374cc3)*3,
		fold(a[1]^0x1d8e4e27c47d124f, b[0]^0xeb44accab455d165) ^ fold(a[0]^0x2127599bf4325c37, b[1]^0x880355f21e6d1965)*5,
	}
}

func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo ^ a<<32 ^ b>>7
}

func (a hash) plus(b hash) hash {
	lo, carry := bits.Add64(a[0], b[0], 0)
	hi, _ := bits.Add64(a[1], b[1], carry)
	return hash{lo, hi}
}

func number(tag, x uint64) hash { return mix(hash{tag, tag * 31}, hash{x, x ^ tag}) }

// Tags of numbers: what a hash stands for.
const (
	tagLeaf = iota + 1
	tagPre
	tagPost
	tagSkew
	tagNode
)

// value is what a range of bytes holds: byte i of the range is the term at
// coordinate at+i. A leaf at coordinate c is byte c of a rank's input, counted
// from the start of that input. tree is the hash of the expression with its
// order; sum is the sum of the numbers of its leaves, the same for any order and
// nesting. The zero value is a range that holds nothing known.
type value struct {
	tree, sum hash
	at        int64
}

func leaf(rank int) value {
	h := number(tagLeaf, uint64(rank))
	return value{tree: h, sum: h}
}

func (v value) nothing() bool { return v.tree == hash{} }

// terms makes values. With kids it also remembers how each was made, so that a
// failure can be told in words; without, hashes are all there is.
type terms struct{ kids map[hash]node }

// node is how a value was made.
type node struct {
	kind int // a tag
	rank int // of a leaf
	kids []value
}

func (t *terms) remember(v value, kind, rank int, kids []value) {
	if t.kids == nil {
		return
	}
	if _, ok := t.kids[v.tree]; !ok {
		t.kids[v.tree] = node{kind: kind, rank: rank, kids: append([]value(nil), kids...)}
	}
}

// input is the input of a rank from its start.
func (t *terms) input(rank int) value {
	v := leaf(rank)
	t.remember(v, tagLeaf, rank, nil)
	return v
}

// wrap applies PRE or POST.
func (t *terms) wrap(v value, tag int) value {
	w := value{tree: mix(number(uint64(tag), 0), v.tree), sum: mix(number(uint64(tag), 1), v.sum), at: v.at}
	if t.kids != nil {
		t.remember(w, tag, 0, []value{v})
	}
	return w
}

// reduce combines values from left to right. One alone stays what it is.
func (t *terms) reduce(vs []value) value {
	if len(vs) == 1 {
		return vs[0]
	}
	w := value{tree: number(tagNode, uint64(len(vs))), at: vs[0].at}
	for _, v := range vs {
		rel := v.at - w.at
		w.tree = mix(mix(w.tree, v.tree), number(tagSkew, uint64(rel)))
		if rel == 0 {
			w.sum = w.sum.plus(v.sum)
		} else {
			w.sum = w.sum.plus(mix(v.sum, number(tagSkew, uint64(rel))))
		}
	}
	t.remember(w, tagNode, 0, vs)
	return w
}
