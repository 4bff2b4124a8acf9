package gpu

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/plan"
	"github.com/goccl/goccl/device/kernels/abi"
)

// Encode makes the Image of p for a rank whose view of the regions, by rank, is
// bases. It is pure. The error wraps goccl.ErrUnsupported for a Program that the
// kernels cannot run, and goccl.ErrInvalid for one that is malformed.
func Encode(p *plan.Program, l Layout, bases []uintptr) (*Image, error) {
	return encode(p, l, bases, flagMask)
}

// flagMask makes the flags of LL repeat after 2^31 steps: an hour, at 2 µs each.
const flagMask = 1<<31 - 1

func encode(p *plan.Program, l Layout, bases []uintptr, mask uint32) (*Image, error) {
	e := &encoder{p: p, l: l, bases: bases, mask: mask}
	if err := e.check(); err != nil {
		return nil, fmt.Errorf("encoding the Program of rank %d for %v: %w", p.Rank, p.Key, err)
	}
	e.m = &Image{Channels: len(p.Rows), Simple: e.proto == goccl.Simple, sems: p.Sems, window: p.Key.Window == plan.WindowBoth,
		state: l.stateBytes(), ranks: p.NRanks}
	e.m.Kernel = e.kernel()
	head := e.head()
	body := e.code()
	head.Opnds = uint32(headBytes + len(body))
	body = e.operands(body)
	head.Exprs = uint32(headBytes + len(body))
	body = e.exprs(body)
	head.Tables = uint32(headBytes + len(body))
	body = e.tables(body)
	head.Bases = uint32(headBytes + len(body))
	for _, b := range bases {
		body = binary.LittleEndian.AppendUint64(body, uint64(b))
	}
	e.m.head = head
	e.m.Bytes = pad(append(record(nil, &head), body...))
	e.m.common = len(e.m.Bytes)
	parts := make([][]byte, len(p.Rows))
	for ch := range p.Rows {
		parts[ch] = e.part(ch)
		e.m.channel = max(e.m.channel, len(parts[ch]))
	}
	for _, b := range parts {
		e.m.Bytes = append(append(e.m.Bytes, b...), make([]byte, e.m.channel-len(b))...)
	}
	return e.m, nil
}

// encoder makes one Image.
type encoder struct {
	p     *plan.Program
	l     Layout
	bases []uintptr
	mask  uint32
	proto goccl.Protocol // by which the kernel moves
	m     *Image
}

// check reports what the kernels cannot run.
func (e *encoder) check() error {
	p := e.p
	if err := plan.Validate(p); err != nil {
		return err
	}
	e.proto = p.Key.Proto
	if p.Key.Window == plan.WindowBoth {
		e.proto = goccl.Simple // nothing but signals, and plain moves between
	}
	switch {
	case p.NRanks != e.l.Ranks || len(e.bases) != e.l.Ranks:
		return fmt.Errorf("%w: %d ranks in a layout for %d with %d regions", goccl.ErrInvalid, p.NRanks, e.l.Ranks, len(e.bases))
	case len(p.Rows) > e.l.Channels:
		return fmt.Errorf("%w: %d channels; the regions have %d", goccl.ErrUnsupported, len(p.Rows), e.l.Channels)
	case len(p.Lanes) == 0:
		return fmt.Errorf("%w: no lanes", goccl.ErrInvalid)
	}
	for i, l := range p.Lanes {
		if l.Agent == plan.CEAgent {
			return fmt.Errorf("%w: lane %d is for a copy engine", goccl.ErrUnsupported, i)
		}
	}
	for ch := range p.Rows {
		if n := len(e.lanes(ch)); n < 1 || n > int(abi.InterpMaxLanes) {
			return fmt.Errorf("%w: channel %d has %d lanes; 1 to %d can run", goccl.ErrUnsupported, ch, n, abi.InterpMaxLanes)
		}
	}
	for i, c := range p.Conns {
		if c.Proto != e.proto {
			return fmt.Errorf("%w: connector %d by %v in a Program by %v", goccl.ErrUnsupported, i, c.Proto, e.proto)
		}
	}
	if err := e.checkSlots(); err != nil {
		return err
	}
	return e.checkTables()
}

// checkSlots compares what a slice can have with the slots that it goes through.
func (e *encoder) checkSlots() error {
	fifo, scratch := e.l.MaxChunk(e.proto)
	slice := int(e.p.Geom.SliceBytes())
	for _, o := range e.p.Opnds {
		room, what := fifo, "FIFO"
		switch o.Kind {
		case plan.Scratch, plan.PeerScratch:
			room, what = scratch, "scratch"
		case plan.FifoSend, plan.FifoRecv:
		default:
			continue
		}
		if slice > room {
			return fmt.Errorf("%w: slices of %d bytes; a %s slot has %d (build with a smaller Key.Chunk)", goccl.ErrUnsupported, slice, what, room)
		}
	}
	return nil
}

func (e *encoder) checkTables() error {
	n := 0
	for _, t := range e.p.Tables {
		n += len(t)
	}
	if n >= 1<<16 {
		return fmt.Errorf("%w: tables of %d entries", goccl.ErrUnsupported, n)
	}
	_, err := e.reduction()
	return err
}

// reduces reports whether any move combines or changes elements.
func (e *encoder) reduces() bool {
	for _, in := range e.p.Code {
		if in.Op == plan.MOVE && (in.NSrc > 1 || in.Flags != 0) {
			return true
		}
	}
	return false
}

// kernelNames lists all kernels: one for each protocol and reduction, and the fused
// forms.
func kernelNames() (names []string) {
	for _, p := range []string{kernelLL, kernelSimple} {
		for _, r := range []string{reductionCopy, reductionF32, reductionBF16} {
			names = append(names, p+r)
		}
	}
	return append(names, fusedGather, fusedSum+reductionF32, fusedSum+reductionBF16)
}

const (
	kernelLL      = "interp_ll_"
	kernelSimple  = "interp_simple_"
	reductionCopy = "copy"
	reductionF32  = "sum_f32"
	reductionBF16 = "sum_bf16"
)

// reduction names the operation of the kernel.
func (e *encoder) reduction() (string, error) {
	k := e.p.Key
	switch sums := k.Op == goccl.Sum || k.Op == goccl.Avg || k.Op == goccl.PreMulSum(0).Kind(); {
	case k.Coll == goccl.Barrier: // reduces nothing, by whatever operation
		return reductionF32, nil
	case !e.reduces():
		return reductionCopy, nil
	case sums && k.DType == goccl.F32:
		return reductionF32, nil
	case sums && k.DType == goccl.BF16:
		return reductionBF16, nil
	}
	return "", fmt.Errorf("%w: %v of %v on a GPU (there are sum, avg and premulsum of f32 and bf16)", goccl.ErrUnsupported, k.Op, k.DType)
}

func (e *encoder) kernel() string {
	name, _ := e.reduction() // checked
	if e.m.Simple {
		return kernelSimple + name
	}
	return kernelLL + name
}

// lanes returns the lanes of a channel.
func (e *encoder) lanes(ch int) (of []plan.Lane) {
	for _, l := range e.p.Lanes {
		if ch%int(l.Mod) == int(l.Rem) {
			of = append(of, l)
		}
	}
	return of
}

func (e *encoder) head() abi.InterpHead {
	p, g, l := e.p, e.p.Geom, e.l
	h := abi.InterpHead{Version: abi.InterpVersion, Rank: uint32(p.Rank), Ranks: uint32(p.NRanks), PerRank: uint32(g.Base),
		Slices: uint32(g.Slices), Chunk: uint32(g.ChunkBytes), Grain: uint32(g.Grain), GrainShift: shift(int(g.Grain)),
		D: uint32(g.D), DShift: shift(g.D), Esize: uint32(p.Key.DType.Size()), Factor: 1, FlagMask: e.mask, SlotMask: uint32(l.Slots - 1),
		SlotBytes: uint32(l.slot(e.proto)), ScratchBytes: uint32(l.scratchSlot(e.proto)), Scratch: uint32(l.scratch(e.proto)),
		ScratchFlag: uint32(flagWord * wordBytes), Block: uint64(l.block())}
	if p.UsesScratch() {
		h.Flags |= abi.InterpUsesScratch
	}
	if e.m.window {
		h.Flags |= abi.InterpUsesWindow
	}
	if n := p.NRanks; p.Key.Op == goccl.Avg && n > 1 {
		if n&(n-1) == 0 {
			h.Factor = 1 / float32(n)
		} else {
			h.Div = float32(n)
		}
	}
	return h
}

// shift returns the logarithm of a power of two, 32 for other numbers.
func shift(n int) uint32 {
	if n&(n-1) != 0 {
		return 32
	}
	return uint32(bits.TrailingZeros(uint(n)))
}

func (e *encoder) code() (b []byte) {
	for _, in := range e.p.Code {
		flags := in.Flags
		if e.p.Key.Op != goccl.Avg {
			flags &^= plan.Post
		}
		e.m.operands = max(e.m.operands, int(in.NSrc)+int(in.NDst))
		b = record(b, &abi.InterpInstr{Op: abi.InterpOp(in.Op), Flags: flags, Nsrc: in.NSrc, Ndst: in.NDst,
			Src: in.Src, Dst: in.Dst, Chunk: in.Chunk, Word: in.Word, Delta: in.Delta})
	}
	return b
}

func (e *encoder) operands(b []byte) []byte {
	for _, o := range e.p.Opnds {
		b = record(b, &abi.InterpOpnd{Kind: abi.InterpKind(o.Kind), Conn: o.Conn, Peer: o.Peer, Slot: o.Slot, Chunk: o.Chunk})
	}
	return b
}

func (e *encoder) exprs(b []byte) []byte {
	first := make([]int, len(e.p.Tables))
	for i := 1; i < len(first); i++ {
		first[i] = first[i-1] + len(e.p.Tables[i-1])
	}
	for _, x := range e.p.Exprs {
		r := abi.InterpExpr{A: x.A, B: x.B, M: x.M, P: int16(x.P)}
		if x.T >= 0 {
			r.T = uint16(1 + first[x.T])
		}
		b = record(b, &r)
	}
	return b
}

func (e *encoder) tables(b []byte) []byte {
	for _, t := range e.p.Tables {
		for _, v := range t {
			b = binary.LittleEndian.AppendUint32(b, v)
		}
	}
	return pad(b)
}

// part encodes what differs between channels.
func (e *encoder) part(ch int) []byte {
	row := e.p.Rows[ch]
	lanes := e.lanes(ch)
	c := abi.InterpChan{P: row.P, Lanes: uint16(len(lanes)), Conns: row.ConnN, Sigs: row.SigN}
	for i, l := range lanes {
		c.Lo[i], c.Hi[i] = l.Lo, l.Hi
	}
	b := record(nil, &c)
	for _, x := range e.p.Conns[row.ConnLo : row.ConnLo+row.ConnN] {
		b = record(b, e.conn(ch, x))
	}
	for _, s := range e.p.Sigs[row.SigLo : row.SigLo+row.SigN] {
		b = record(b, e.sig(ch, s))
	}
	e.m.counters = max(e.m.counters, int(row.ConnN)+int(row.SigN))
	e.m.lanes = max(e.m.lanes, len(lanes))
	return pad(b)
}

// conn finds both ends of a FIFO: slots and tail are at the receiver, the head at
// the sender.
func (e *encoder) conn(ch int, c plan.Conn) *abi.InterpConn {
	self, peer := e.p.Rank, int(c.Peer)
	here := uint64(e.bases[self]) + uint64(e.l.offset(self, ch, peer))
	there := uint64(e.bases[peer]) + uint64(e.l.offset(peer, ch, self))
	head := uint64((headWord + int(c.Index)*protocols + proto(c.Proto)) * wordBytes)
	tail := uint64((tailWord + int(c.Index)) * wordBytes)
	fifo := uint64(e.l.fifo(int(c.Index), c.Proto))
	r := &abi.InterpConn{State: uint32(e.l.connState(self, c))}
	if c.Send {
		r.Slots, r.Watch, r.Post = there+fifo, here+head, there+tail
	} else {
		r.Slots, r.Watch, r.Post = here+fifo, here+tail, there+head
	}
	switch { // the lines of LL say themselves that they are there
	case c.Proto == goccl.LL && c.Send:
		r.Post = 0
	case c.Proto == goccl.LL:
		r.Watch = 0
	}
	return r
}

// sig finds the word of a signal, which is at the rank that waits.
func (e *encoder) sig(ch int, s plan.Sig) *abi.InterpSig {
	self, peer := e.p.Rank, int(s.Peer)
	at := uint64(e.bases[self]) + uint64(e.l.offset(self, ch, peer))
	if s.Out {
		at = uint64(e.bases[peer]) + uint64(e.l.offset(peer, ch, self))
	}
	return &abi.InterpSig{Word: at + uint64((signalWord+int(s.Word))*wordBytes), Call: at + callWord*uint64(wordBytes),
		State: uint32(e.l.sigState(self, s)), Peer: uint32(peer), Number: uint32(s.Word)}
}

// record appends a structure as the kernels read it.
func record[T any](b []byte, v *T) []byte { return append(b, abi.Bytes(v)...) }

func pad(b []byte) []byte { return append(b, make([]byte, -len(b)&15)...) }
