package check

// fifo is a connection between two ranks. Sender and receiver are one lane at a
// time each.
type fifo struct {
	from, to         int
	depth            int // steps that the sender may be ahead: its credit
	slots            []fifoSlot
	freed            []clock // of the last release, by step mod depth
	posted, released int
	sender, receiver stamp // last use of each end
}

// fifoSlot is one slot and what it holds.
type fifoSlot struct {
	data  []piece
	bytes int64
	full  clock // of the post
	wrote stamp
	read  stamp
	step  int // of the post, plus one
}

func newFIFO(from, to, depth int) *fifo {
	return &fifo{from: from, to: to, depth: depth, slots: make([]fifoSlot, depth), freed: make([]clock, depth)}
}

func (f *fifo) full() bool  { return f.posted-f.released >= f.depth }
func (f *fifo) empty() bool { return f.posted == f.released }

// next returns the slot of the next post and last that of the next receive.
func (f *fifo) next() *fifoSlot { return &f.slots[f.posted%len(f.slots)] }
func (f *fifo) last() *fifoSlot { return &f.slots[f.released%len(f.slots)] }

// acquire takes over the clock of the release that makes the next slot free.
func (f *fifo) acquire(c clock) {
	if f.posted >= f.depth {
		c.join(f.freed[f.posted%f.depth])
	}
}

// post publishes data in the next slot.
func (f *fifo) post(c clock, s stamp, bytes int64, data []piece) {
	slot := f.next()
	slot.data = append(slot.data[:0], data...)
	slot.bytes, slot.wrote, slot.step = bytes, s, f.posted+1
	slot.full = c.copyTo(slot.full)
	f.sender = s
	f.posted++
}

// release gives the oldest slot back.
func (f *fifo) release(c clock, s stamp) {
	f.last().read = s
	i := f.released % f.depth
	f.freed[i] = c.copyTo(f.freed[i])
	f.receiver = s
	f.released++
}

// counter is a signal word or a semaphore: it only grows, one thread at a time
// adds to it and one takes.
type counter struct {
	added, taken uint64
	adds         []add
	adder, taker stamp
}

// add is one addition and the count after it.
type add struct {
	count uint64
	c     clock
}

func (n *counter) add(c clock, s stamp, d uint64) {
	n.added += d
	n.adds = append(n.adds, add{count: n.added, c: c.copyTo(nil)})
	n.adder = s
}

func (n *counter) ready(d uint64) bool { return n.added-n.taken >= d }

// take takes d and takes over the clock of the addition that made it possible.
func (n *counter) take(c clock, s stamp, d uint64) {
	n.taken += d
	n.taker = s
	i := 0
	for n.adds[i].count < n.taken {
		i++
	}
	c.join(n.adds[i].c)
	if n.adds[i].count == n.taken {
		i++
	}
	n.adds = n.adds[i:]
}

// scratchSlot is a slot of one bank of a rank's scratch. Its writer raises a
// flag, the epoch plus one; nothing gives it back.
type scratchSlot struct {
	data  []piece
	bytes int64
	epoch uint64
	flag  clock // of the first write in this epoch: what a reader may have seen
	wrote stamp
	reads readers
}
