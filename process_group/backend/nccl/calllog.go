package nccl

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/goccl/goccl"
	processgroup "github.com/goccl/goccl/process_group"
)

// logged is how many collectives a rank remembers: more than a GPU does between two
// audits. told is how many of the last it tells when asked what it does.
const (
	logged = 1 << 14
	told   = 8
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
	redop uint8 // its kind
	dtype goccl.DType
	root  int32
	parts int32
	count int64 // of one rank's part; -1 where ranks may differ
}

func briefOf(op *processgroup.Op) brief {
	b := brief{coll: op.Coll, root: -1, count: int64(op.Src.Count), dtype: op.Src.DType, parts: int32(len(op.Parts))}
	if b.parts > 0 {
		return brief{coll: op.Coll, root: -1, count: -1}
	}
	switch op.Coll {
	case goccl.ReduceScatter, goccl.Scatter:
		b.count, b.dtype = int64(op.Dst.Count), op.Dst.DType
	case goccl.AllToAll:
		if len(op.SendCounts) > 0 {
			b.count = -1
		}
	case goccl.Barrier:
		return brief{coll: goccl.Barrier, root: -1, count: -1}
	}
	if op.Coll.Reduces() {
		b.redop = uint8(op.Redop.Kind())
	}
	if op.Coll.Rooted() {
		b.root = int32(op.Root)
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
		s += " " + kindName(goccl.ReduceOp(b.redop))
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
	for _, x := range [...]uint64{uint64(b.coll), uint64(b.redop), uint64(b.dtype), uint64(b.count), uint64(b.root), uint64(b.parts)} {
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
		r.Calls = append(r.Calls, l.ring[i%logged].tell())
	}
	return r
}

func (e *entry) tell() reportedCall { return reportedCall{e.seq, e.sum, e.String()} }

// span is a question for some of the collectives that a rank remembers: every
// Step-th from number From to number To.
type span struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
	Step uint64 `json:"step"`
}

// about returns the collectives of s that are remembered.
func (l *callLog) about(s span) []reportedCall {
	l.mu.Lock()
	defer l.mu.Unlock()
	var calls []reportedCall
	for i := l.n - min(l.n, logged); i < l.n && len(calls) < 2*narrow; i++ {
		if e := &l.ring[i%logged]; e.seq >= s.From && e.seq <= s.To && (e.seq-s.From)%max(s.Step, 1) == 0 {
			calls = append(calls, e.tell())
		}
	}
	return calls
}

// oldest returns the number of the first collective that is remembered.
func (l *callLog) oldest() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n == 0 {
		return 0
	}
	return l.ring[(l.n-min(l.n, logged))%logged].seq
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
