package check

// clock is a vector clock: for each thread, how many of its events are known to
// have happened. Threads are the users of the ranks and the lanes of their
// channels.
type clock []uint32

// stamp is one event of one thread.
type stamp struct {
	thread int32
	at     uint32
}

// after reports whether s happened before what c stands for.
func (c clock) after(s stamp) bool { return c[s.thread] >= s.at }

// join adds what d knows.
func (c clock) join(d clock) {
	for i, x := range d {
		if x > c[i] {
			c[i] = x
		}
	}
}

// copyTo overwrites dst, which is made when it is nil.
func (c clock) copyTo(dst clock) clock {
	if dst == nil {
		dst = make(clock, len(c))
	}
	copy(dst, c)
	return dst
}

// readers are the reads of a place since its last write, the last of each
// thread. Nearly always there is one.
type readers struct {
	first stamp
	more  []stamp
	any   bool
}

func (r *readers) add(s stamp) {
	if !r.any {
		r.first, r.any = s, true
		return
	}
	if r.first.thread == s.thread {
		r.first = s
		return
	}
	for i := range r.more {
		if r.more[i].thread == s.thread {
			r.more[i] = s
			return
		}
	}
	r.more = append(r.more, s)
}

// unordered returns a read that is not known to have happened at c.
func (r *readers) unordered(c clock) (stamp, bool) {
	if !r.any {
		return stamp{}, false
	}
	if !c.after(r.first) {
		return r.first, true
	}
	for _, s := range r.more {
		if !c.after(s) {
			return s, true
		}
	}
	return stamp{}, false
}

// clone is for a place that is cut in two.
func (r readers) clone() readers {
	r.more = append([]stamp(nil), r.more...)
	return r
}
