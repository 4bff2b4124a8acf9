package processgroup

import (
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/trace"
)

// recorderSize is how many operations the flight recorder remembers.
const recorderSize = 2000

// recorder is the flight recorder: a ring of the last operations, written in
// place without allocation. core.mu guards it.
type recorder struct {
	ring []record
	last uint64 // generation written last; 0: none
	base time.Time
	rank int
	size int
}

// record is one operation as it is kept: numbers, and strings that are constants
// or the user's.
type record struct {
	gen    uint64
	seq    uint64
	bytes  int64
	count  int64
	redop  goccl.ReduceOp
	queued int64 // nanoseconds after base; 0: not reached
	began  int64
	ended  int64
	label  string
	name   string
	root   int32
	parts  int32
	choice choice
	dtype  goccl.DType
	flags  recordFlags
}

type recordFlags uint8

const (
	recP2P recordFlags = 1 << iota
	recReduces
	recRefused
	recFailed
)

func (r *recorder) init(cfg *Config, base time.Time) {
	r.ring = make([]record, recorderSize)
	r.base, r.rank, r.size = base, cfg.Rank, cfg.Size
}

// queue enters op under its generation.
func (r *recorder) queue(op *Op) *record {
	gen := op.life.gen
	e := &r.ring[gen%recorderSize]
	r.last = gen
	*e = record{gen: gen, seq: op.Seq, redop: op.Redop, queued: op.life.queued, label: op.Label,
		name: op.Name(), root: int32(op.Root), parts: int32(len(op.Parts) + len(op.Batch))}
	if op.P2P() {
		e.flags |= recP2P
	}
	if op.Coll.Reduces() {
		e.flags |= recReduces
	}
	e.count, e.bytes, e.dtype = op.extent()
	return e
}

// refuse enters op as a call that was refused.
func (r *recorder) refuse(op *Op) {
	e := r.queue(op)
	e.flags |= recRefused
	e.ended = e.queued
}

// end completes the entry of op, if it is still there.
func (r *recorder) end(op *Op, now int64, err error) {
	gen := op.life.gen
	e := &r.ring[gen%recorderSize]
	if e.gen != gen {
		return
	}
	e.began, e.choice = op.beganAt()
	e.ended = now
	if err != nil {
		e.flags |= recFailed
	}
}

// extent returns the elements, bytes and type of the larger of input and output,
// over all parts.
func (op *Op) extent() (count, bytes int64, d goccl.DType) {
	d = op.Src.DType
	if !d.Valid() {
		d = op.Dst.DType
	}
	src, dst := op.Src.Count, op.Dst.Count
	if len(op.SrcList)+len(op.DstList)+len(op.Batch)+len(op.Parts) == 0 {
		count = int64(max(src, dst))
		return count, count * int64(d.Size()), d
	}
	for i := range op.SrcList {
		src += op.SrcList[i].Count
	}
	for i := range op.DstList {
		dst += op.DstList[i].Count
	}
	count = int64(max(src, dst))
	bytes = count * int64(d.Size())
	for i := range op.Batch {
		count += int64(op.Batch[i].Buf.Count)
		bytes += int64(op.Batch[i].Buf.Bytes())
		d = op.Batch[i].Buf.DType
	}
	for _, part := range op.Parts {
		n, b, t := part.extent()
		count, bytes, d = count+n, bytes+b, t
	}
	return count, bytes, d
}

// oldest returns the generation of the oldest entry that may be in the ring.
func (r *recorder) oldest() uint64 {
	if r.last <= recorderSize {
		return 1
	}
	return r.last - recorderSize + 1
}

// at returns the entry of a generation, nil when it was overwritten or never
// entered.
func (r *recorder) at(gen uint64) *record {
	if e := &r.ring[gen%recorderSize]; gen != 0 && e.gen == gen {
		return e
	}
	return nil
}

// algo and proto name how the operation ran; empty when the backend did not say.
func (e *record) algo() string {
	if e.began == 0 {
		return ""
	}
	return e.choice.algorithm().String()
}

func (e *record) proto() string {
	if e.began == 0 {
		return ""
	}
	return e.choice.protocol().String()
}

func (e *record) state() string {
	switch {
	case e.flags&recRefused != 0:
		return trace.Refused
	case e.flags&recFailed != 0:
		return trace.Failed
	case e.ended != 0:
		return trace.Done
	case e.began != 0:
		return trace.Started
	}
	return trace.Queued
}

// stamp turns nanoseconds after base into a time; zero stays zero.
func (r *recorder) stamp(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return r.base.Add(time.Duration(ns))
}
