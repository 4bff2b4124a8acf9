package comm

import (
	"fmt"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/exec"
	"github.com/goccl/goccl/comm/plan"
)

// The FIFOs of a connection. A chunk is one slot, so that what is in flight
// toward a peer is bounded: 32 KiB for LL, 512 KiB for Simple.
const (
	fifoSlots  = 4
	slotLL     = 8 << 10
	slotSimple = 128 << 10
	eagerBytes = 8 << 10 // operations up to this size begin inside the call
	choices    = 64      // decisions kept for calls like earlier ones; a power of two
)

// choice is a decision for calls of one kind and size. A training step makes the
// same few calls again and again.
type choice struct {
	kind
	key   plan.Key
	bound *exec.Bound
	sign  uint64
}

// kind is what a decision depends on.
type kind struct {
	coll   goccl.Collective
	dtype  goccl.DType
	window bool
	root   int32
	op     goccl.ReduceOp
	unit   int64
}

// slot is where the decision for k is kept, if it is.
func (k *kind) slot() uint64 {
	return mix(uint64(k.unit)^uint64(k.coll)<<56^uint64(k.dtype)<<48^uint64(k.op)<<40^uint64(k.root)<<20) % choices
}

// prepare fills p for a call: key, arguments and, when it is known, the bound
// Program. The signature is left to the caller, who knows the sequence. Called
// with the queue lock held.
func (c *Communicator) prepare(call *Call, p *part) error {
	u := call.unitBuffer()
	unit, dtype := int64(u.Bytes()), u.DType
	switch call.Coll {
	case goccl.AllToAll:
		unit /= int64(c.size)
	case goccl.Barrier:
		dtype = goccl.U8
	}
	p.args = exec.Args{In: call.Src.Addr, Out: call.Dst.Addr, Unit: unit}
	p.args.Scale, p.args.Scaled = call.Op.Scale()
	p.bound, p.begun, p.ended, p.self = nil, false, false, false
	if call.Coll == goccl.SendRecv {
		return c.prepareTransfer(call, p, unit)
	}
	window := call.Coll == goccl.AllReduce && !p.args.Scaled && c.windows.find(call, &p.args)
	root := 0
	if call.Coll.Rooted() {
		root = call.Root
	}
	k := kind{coll: call.Coll, dtype: dtype, window: window, root: int32(root), op: call.Op.Kind(), unit: unit}
	known := c.recent
	if known == nil || known.kind != k {
		known = &c.choices[k.slot()]
	}
	if known.bound != nil && known.kind == k {
		c.recent = known
		p.key, p.bound, p.sign = known.key, known.bound, known.sign
		return nil
	}
	key, err := c.choose(call, dtype, unit, window, root)
	if err != nil {
		return err
	}
	p.key, p.bound, p.sign = key, c.programs[key], signature(&key, dtype, unit)
	if p.bound != nil {
		*known = choice{kind: k, key: key, bound: p.bound, sign: p.sign}
	}
	return nil
}

// prepareTransfer is prepare for one side of a transfer. Both sides know the
// size, so the protocol follows from it.
func (c *Communicator) prepareTransfer(call *Call, p *part, unit int64) error {
	if call.Root == c.rank {
		return fmt.Errorf("%w: rank %d sends to itself; copy instead", goccl.ErrInvalid, c.rank)
	}
	key := plan.Key{Coll: goccl.SendRecv, Algo: goccl.Direct, Proto: goccl.Simple, DType: goccl.U8, Channels: 1,
		Send: call.Send, Root: int32(call.Root), Chunk: slotSimple}
	if unit <= slotLL {
		key.Proto, key.Chunk = goccl.LL, slotLL
	}
	p.key, p.bound = key, c.programs[key]
	d := call.unitBuffer().DType
	p.sign = mix(signature(&key, d, unit) ^ uint64(call.Tag))
	return nil
}

// choose asks the tuner and makes the key of its decision.
func (c *Communicator) choose(call *Call, d goccl.DType, unit int64, window bool, root int) (plan.Key, error) {
	r := Request{Coll: call.Coll, Bytes: unit, DType: d, Op: call.Op.Kind(), Ranks: c.size, Mapped: c.graph.Mapped, Window: window,
		MaxOneShot: int64(slotLL), MaxChunkLL: slotLL, MaxChunkSimple: slotSimple,
		Hosts: c.hosts, RanksPerHost: c.crowd.ranks, Cores: c.crowd.cores, InProcess: c.crowd.inProcess}
	if c.graph.Mapped {
		r.MaxOneShot = int64(c.layout.SlotBytes)
	}
	switch call.Coll {
	case goccl.AllGather, goccl.ReduceScatter, goccl.AllToAll, goccl.Gather, goccl.Scatter:
		r.Bytes *= int64(c.size)
	}
	dec, err := c.tuner.Choose(r)
	if err != nil {
		return plan.Key{}, fmt.Errorf("choosing an algorithm: %w", err)
	}
	most := r.MaxChunkSimple
	if dec.Proto == goccl.LL {
		most = r.MaxChunkLL
	}
	if dec.Algo == goccl.OneShot {
		most = r.MaxOneShot
		if unit > most {
			return plan.Key{}, fmt.Errorf("%w: %v by %v of %d bytes; at most %d (a forced algorithm? see GOCCL_ALGO)", goccl.ErrUnsupported, call.Coll, dec.Algo, unit, most)
		}
	}
	chunk := dec.Chunk
	if chunk <= 0 || chunk > most {
		chunk = most
	}
	key := plan.Key{Coll: call.Coll, Algo: dec.Algo, Proto: dec.Proto, DType: d, Channels: uint8(min(max(dec.Channels, 1), exec.MaxChannels)),
		Root: int32(root), Chunk: uint32(chunk)}
	if call.Coll.Reduces() {
		key.Op = call.Op.Kind()
	}
	if window && dec.Algo == goccl.TwoShot {
		key.Window = plan.WindowBoth
		key.Chunk = 1 << 30 // nothing is staged, so nothing bounds a chunk
	}
	return key, nil
}

// signature mixes what must agree between ranks into one word. It is compared,
// not trusted: a clash is explained by asking the ranks.
func signature(k *plan.Key, d goccl.DType, unit int64) uint64 {
	h := uint64(k.Coll) | uint64(k.Algo)<<8 | uint64(k.Proto)<<16 | uint64(d)<<24 | uint64(k.Op)<<32 | uint64(k.Channels)<<40 | uint64(k.Window)<<48
	if k.Coll != goccl.SendRecv {
		h ^= uint64(uint32(k.Root)) << 20
	}
	return mix(mix(h) ^ uint64(unit) ^ uint64(k.Chunk)<<40)
}

// mix is the finaliser of splitmix64 (Steele, Lea and Flood, 2014).
func mix(h uint64) uint64 {
	h += 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
