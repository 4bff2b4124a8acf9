package bucket

// alignBytes is the alignment of every gradient inside its arena: a cache line
// and the widest vector. Each gradient's slot is rounded up to it, so that the
// sum of the slots of a key does not depend on their order: another bucket
// layout is a permutation of the same arena and allocates nothing.
const alignBytes = 64

// span is a range of elements [from, to) of the arena of a key.
type span struct{ from, to int }

// placement says where everything lies: the spans of the parameters (without
// padding), those of the buckets (with it), and the length of each arena.
type placement struct {
	keys   []key // one arena each, in the order of params
	arena  []int // per parameter: index in keys, -1 when frozen
	length []int // per arena, in elements
	param  []span
	bucket []bucketSpan
}

type bucketSpan struct {
	arena int
	span
}

// place lays the buckets of each key one after the other into its arena. The
// padding between gradients is part of the buckets. It is zero from the start
// and stays so, since every reduction of zeros that a bucket may go through
// gives zeros.
func place(items []item, counts []int, buckets [][]int) placement {
	p := placement{arena: make([]int, len(items)), param: make([]span, len(items)), bucket: make([]bucketSpan, len(buckets))}
	index := map[key]int{}
	for i, it := range items {
		p.arena[i] = -1
		if it.frozen {
			continue
		}
		a, ok := index[it.key]
		if !ok {
			a = len(p.keys)
			index[it.key] = a
			p.keys = append(p.keys, it.key)
		}
		p.arena[i] = a
	}
	p.length = make([]int, len(p.keys))
	for b, members := range buckets {
		a := p.arena[members[0]]
		bs := bucketSpan{arena: a, span: span{from: p.length[a]}}
		for _, i := range members {
			from := p.length[a]
			p.param[i] = span{from, from + counts[i]}
			p.length[a] = from + padded(counts[i], items[i].dtype.Size())
		}
		bs.to = p.length[a]
		p.bucket[b] = bs
	}
	return p
}

// padded rounds n elements of the given size up to whole multiples of alignBytes.
func padded(n, size int) int {
	per := alignBytes / size
	return (n + per - 1) / per * per
}
