package plan

// Base says what the chunk index of an operand counts.
type Base uint8

// The bases. Whole: the buffer is cut into iterations of D chunks and the index
// picks one of them. PerRank: the buffer is blocks of equal size, the index
// picks the block, and every iteration takes one chunk of each block.
const (
	Whole Base = iota
	PerRank
)

// Geom cuts a buffer into channels, iterations, chunks and slices. All of it is
// arithmetic on bytes relative to the user's pointer.
type Geom struct {
	Base       Base
	Grain      int64 // every cut but the last is a multiple of it
	ChunkBytes int64 // most bytes of a chunk, a multiple of Grain
	Slices     int   // slices of a chunk: the unit of FIFO steps
	D          int   // chunks of an iteration (Whole); 1 for PerRank
}

// Span returns where channel ch of nch begins and how long it is, for a unit
// (the whole buffer, or one block) of the given bytes. Channels get whole
// grains, the first ones one more when it does not come out even.
func (g Geom) Span(unit int64, ch, nch int) (lo, n int64) {
	grains := (unit + g.Grain - 1) / g.Grain
	per, extra := grains/int64(nch), grains%int64(nch)
	c := int64(ch)
	first := c*per + min(c, extra)
	count := per
	if c < extra {
		count++
	}
	lo = min(first*g.Grain, unit)
	return lo, min((first+count)*g.Grain, unit) - lo
}

// Iters returns the number of iterations over n bytes of a channel: at least
// one, so that an operation on nothing still meets its peers.
func (g Geom) Iters(n int64) int64 {
	per := int64(g.D) * g.ChunkBytes
	return max(1, (n+per-1)/per)
}

// Chunk returns offset and length of chunk v of iteration k in n bytes of a
// channel. In the last iteration the rest is spread evenly over the D chunks in
// whole grains; chunks past the end have length 0. For PerRank pass v = 0.
func (g Geom) Chunk(n, k int64, v int) (off, length int64) {
	per := int64(g.D) * g.ChunkBytes
	start := k * per
	rest := min(max(n-start, 0), per)
	chunk := g.ChunkBytes
	if rest < per {
		even := (rest + int64(g.D) - 1) / int64(g.D)
		chunk = min(chunk, (even+g.Grain-1)/g.Grain*g.Grain)
	}
	in := min(int64(v)*chunk, rest)
	return start + in, min(chunk, rest-in)
}

// Slice returns offset and length of slice s of a chunk of the given length.
func (g Geom) Slice(length int64, s int) (off, n int64) {
	per := (length + int64(g.Slices) - 1) / int64(g.Slices)
	per = (per + g.Grain - 1) / g.Grain * g.Grain
	off = min(int64(s)*per, length)
	return off, min(per, length-off)
}

// SliceBytes returns the most bytes a slice can have.
func (g Geom) SliceBytes() int64 {
	_, n := g.Slice(g.ChunkBytes, 0)
	return n
}
