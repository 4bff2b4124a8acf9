package nccl

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/goccl/goccl"
	processgroup "github.com/goccl/goccl/process_group"
)

// logged is how many calls a rank remembers, and told is how many of them it tells
// when another rank asks.
const (
	logged = 256
	told   = 64
)

// callLog remembers the last collectives of this rank, so that ranks that make
// different calls can be told who called what: NCCL does not notice. Each entry has
// a signature of all collectives up to it.
type callLog struct {
	mu   sync.Mutex
	ring [logged]entry
	n    uint64 // collectives so far
	sum  uint64 // signature of all of them
	seq  uint64 // number of the last, as the group counts
}

// entry is a collective in short; it is put into words when somebody asks.
type entry struct {
	brief
	seq uint64
	sum uint64
}

// brief is what ranks must agree on.
type brief struct {
	coll  goccl.Collective
	redop goccl.ReduceOp // without its scale
	dtype goccl.DType
	count int // of one rank's part; -1 where ranks may differ
	root  int
	parts int
}

func briefOf(op *processgroup.Op) brief {
	b := brief{coll: op.Coll, root: -1, count: op.Src.Count, dtype: op.Src.DType, parts: len(op.Parts)}
	if b.parts > 0 {
		return brief{coll: op.Coll, root: -1, count: -1}
	}
	switch op.Coll {
	case goccl.ReduceScatter, goccl.Scatter:
		b.count, b.dtype = op.Dst.Count, op.Dst.DType
	case goccl.AllToAll:
		if len(op.SendCounts) > 0 {
			b.count = -1
		}
	case goccl.Barrier:
		return brief{coll: goccl.Barrier, root: -1, count: -1}
	}
	if op.Coll.Reduces() {
		b.redop = op.Redop.Kind()
	}
	if op.Coll.Rooted() {
		b.root = op.Root
	}
	return b
}

// String returns, for example, "allreduce of 43 f32 sum".
func (b brief) String() string {
	if b.coll == goccl.Barrier {
		return "barrier"
	}
	s := b.coll.String()
	if b.count >= 0 {
		s += fmt.Sprintf(" of %d %v", b.count, b.dtype)
	}
	if b.coll.Reduces() && b.count >= 0 {
		s += " " + kindName(b.redop)
	}
	if b.root >= 0 {
		s += fmt.Sprintf(" root %d", b.root)
	}
	return s
}

func kindName(op goccl.ReduceOp) string {
	if _, scaled := op.Scale(); scaled {
		return "premulsum"
	}
	return op.String()
}

// signature mixes b into the signature of what came before.
func (b brief) signature(before uint64) uint64 {
	h := before
	for _, x := range [...]uint64{uint64(b.coll), uint64(b.redop), uint64(b.dtype), uint64(b.count), uint64(int64(b.root)), uint64(b.parts)} {
		h = mix(h ^ x)
	}
	return h
}

// mix is the finaliser of splitmix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// add notes a collective. Operations that only send and receive concern two ranks
// and are left out.
func (l *callLog) add(op *processgroup.Op) {
	if op.P2P() {
		return
	}
	b := briefOf(op)
	l.mu.Lock()
	l.sum = b.signature(l.sum)
	l.ring[l.n%logged] = entry{b, op.Seq, l.sum}
	l.n++
	l.seq = op.Seq
	l.mu.Unlock()
}

// report is what a rank says of itself when another asks.
type report struct {
	Seq   uint64         `json:"seq"`   // collectives begun, as the group counts
	Stage int32          `json:"stage"` // of the forming of the communicator
	Calls []reportedCall `json:"calls,omitempty"`
}

type reportedCall struct {
	Seq  uint64 `json:"seq"`
	Sum  uint64 `json:"sum"`
	Text string `json:"text"`
}

// report returns the last calls, oldest first.
func (l *callLog) report(stage int32) report {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := report{Seq: l.seq, Stage: stage}
	for i := l.n - min(l.n, told); i < l.n; i++ {
		e := &l.ring[i%logged]
		r.Calls = append(r.Calls, reportedCall{e.seq, e.sum, e.String()})
	}
	return r
}

func (r report) encode() []byte {
	b, err := json.Marshal(r)
	if err != nil {
		return nil
	}
	return b
}

func readReport(b []byte) (report, bool) {
	var r report
	return r, json.Unmarshal(b, &r) == nil
}
