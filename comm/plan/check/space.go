package check

import (
	"slices"
	"sort"
)

// seg is a range of a buffer with one history.
type seg struct {
	off, end int64
	v        value
	stale    bool // an input that has been overwritten
	wrote    stamp
	reads    readers
}

// space is the bytes of a buffer, cut wherever an access began or ended.
type space struct{ segs []seg }

// piece is a part of a slice with one value.
type piece struct {
	n int64
	v value
}

// newSpace returns n bytes that hold nothing, last written at s.
func newSpace(n int64, s stamp) *space {
	if n == 0 {
		return &space{}
	}
	segs := make([]seg, 1, 16)
	segs[0] = seg{end: n, wrote: s}
	return &space{segs: segs}
}

// cut makes sure that a segment begins at off and returns its index.
func (s *space) cut(off int64) int {
	i := sort.Search(len(s.segs), func(i int) bool { return s.segs[i].end > off })
	if i == len(s.segs) || s.segs[i].off == off {
		return i
	}
	tail := s.segs[i]
	tail.v.at += off - tail.off
	tail.off = off
	tail.reads = tail.reads.clone()
	s.segs[i].end = off
	s.segs = slices.Insert(s.segs, i+1, tail)
	return i + 1
}

// each calls f on the segments of [off, off+n), which lies within the space.
func (s *space) each(off, n int64, f func(g *seg) *Violation) *Violation {
	if n == 0 {
		return nil
	}
	lo := s.cut(off)
	hi := s.cut(off + n)
	for i := lo; i < hi; i++ {
		if v := f(&s.segs[i]); v != nil {
			return v
		}
	}
	return nil
}

// fill sets the value of a range at the start of an operation.
func (s *space) fill(off, n int64, v value) {
	s.each(off, n, func(g *seg) *Violation {
		g.v = v
		g.v.at += g.off - off
		return nil
	})
}

// view is a buffer of a rank: a range of a space. Two views of one space are a
// call in place.
type view struct {
	s      *space
	off, n int64
}
