package gpu_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/exec/gpu"
	"github.com/goccl/goccl/comm/exec/gpu/gputest"
	"github.com/goccl/goccl/comm/plan"
	"github.com/goccl/goccl/comm/plan/algo"
	"github.com/goccl/goccl/device/kernels/abi"
	"github.com/goccl/goccl/internal/golden"
)

// decoded is an image read back.
type decoded struct {
	head   abi.InterpHead
	code   []abi.InterpInstr
	opnds  []abi.InterpOpnd
	exprs  []abi.InterpExpr
	tables []uint32
	bases  []uint64
	parts  []part
}

type part struct {
	chans abi.InterpChan
	conns []abi.InterpConn
	sigs  []abi.InterpSig
}

// read decodes values of type T until end bytes of the image are left behind.
func read[T any](t *testing.T, b []byte, at *int, end int) (vs []T) {
	t.Helper()
	for *at < end {
		var v T
		n, err := binary.Decode(b[*at:], binary.LittleEndian, &v)
		require.NoError(t, err)
		vs, *at = append(vs, v), *at+n
	}
	require.Equal(t, end, *at)
	return vs
}

func decode(t *testing.T, m *gpu.Image) (d decoded) {
	t.Helper()
	b, at := m.Bytes, 0
	d.head = read[abi.InterpHead](t, b, &at, binary.Size(d.head))[0]
	h := d.head
	d.code = read[abi.InterpInstr](t, b, &at, int(h.Opnds))
	d.opnds = read[abi.InterpOpnd](t, b, &at, int(h.Exprs))
	d.exprs = read[abi.InterpExpr](t, b, &at, int(h.Tables))
	d.tables = read[uint32](t, b, &at, int(h.Bases))
	d.bases = read[uint64](t, b, &at, int(h.Bases+8*h.Ranks))
	at = (at + 15) / 16 * 16
	size := (len(b) - at) / m.Channels
	for range m.Channels {
		next := at + size
		p := part{chans: read[abi.InterpChan](t, b, &at, at+binary.Size(abi.InterpChan{}))[0]}
		p.conns = read[abi.InterpConn](t, b, &at, at+int(p.chans.Conns)*binary.Size(abi.InterpConn{}))
		p.sigs = read[abi.InterpSig](t, b, &at, at+int(p.chans.Sigs)*binary.Size(abi.InterpSig{}))
		d.parts, at = append(d.parts, p), next
	}
	require.Equal(t, len(b), at)
	return d
}

func encodeKey(t *testing.T, k plan.Key, l gpu.Layout, rank int) (*plan.Program, *gpu.Image) {
	t.Helper()
	p, err := algo.Build(k, rank, gputest.Mapped(t, l.Ranks))
	require.NoError(t, err)
	m, err := gpu.Encode(p, l, bases(l.Ranks))
	require.NoError(t, err)
	return p, m
}

func bases(n int) (b []uintptr) {
	for r := range n {
		b = append(b, uintptr(r+1)<<40)
	}
	return b
}

// TestImagesReadBack encodes every Program and reads it back.
func TestImagesReadBack(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		l := gputest.Small(n)
		gputest.Cases(l, func(k plan.Key) {
			for r := range n {
				k := k
				if k.Coll == goccl.SendRecv {
					k.Send, k.Root = r%2 == 0, int32((r+1)%n)
				}
				p, m := encodeKey(t, k, l, r)
				sameProgram(t, p, decode(t, m))
			}
		})
	}
}

func sameProgram(t *testing.T, p *plan.Program, d decoded) {
	t.Helper()
	require.Len(t, d.code, len(p.Code))
	for i, x := range d.code {
		require.Equal(t, p.Code[i], plan.Instr{Op: plan.Code(x.Op), Flags: p.Code[i].Flags, NSrc: x.Nsrc, NDst: x.Ndst, Src: x.Src, Dst: x.Dst,
			Chunk: x.Chunk, Word: x.Word, Delta: x.Delta})
		require.Equal(t, p.Code[i].Flags&^plan.Post, x.Flags, "a sum is divided by nothing")
	}
	require.Len(t, d.opnds, len(p.Opnds))
	for i, x := range d.opnds {
		require.Equal(t, p.Opnds[i], plan.Operand{Kind: plan.Kind(x.Kind), Conn: x.Conn, Peer: x.Peer, Slot: x.Slot, Chunk: x.Chunk})
	}
	var tables []uint32
	first := map[int]int8{}
	for i, tab := range p.Tables {
		first[len(tables)] = int8(i)
		tables = append(tables, tab...)
	}
	require.Equal(t, tables, append([]uint32(nil), d.tables[:len(tables)]...))
	for i, x := range d.exprs {
		tab := int8(-1)
		if x.T > 0 {
			tab = first[int(x.T)-1]
		}
		require.Equal(t, p.Exprs[i], plan.Expr{A: x.A, B: x.B, M: x.M, P: int8(x.P), T: tab})
	}
	g := plan.Geom{Base: plan.Base(d.head.PerRank), Grain: int64(d.head.Grain), ChunkBytes: int64(d.head.Chunk), Slices: int(d.head.Slices), D: int(d.head.D)}
	require.Equal(t, p.Geom, g)
	require.Len(t, d.parts, len(p.Rows))
	for ch, x := range d.parts {
		require.Equal(t, p.Rows[ch].P, x.chans.P)
		i := 0
		for _, l := range p.Lanes {
			if ch%int(l.Mod) == int(l.Rem) {
				require.Equal(t, [2]uint16{l.Lo, l.Hi}, [2]uint16{x.chans.Lo[i], x.chans.Hi[i]})
				i++
			}
		}
		require.EqualValues(t, i, x.chans.Lanes)
		require.EqualValues(t, p.Rows[ch].ConnN, x.chans.Conns)
		require.EqualValues(t, p.Rows[ch].SigN, x.chans.Sigs)
	}
}

// TestOperationsHaveTheSameNumbers compares the enumerations of both sides.
func TestOperationsHaveTheSameNumbers(t *testing.T) {
	for a, b := range map[abi.InterpOp]plan.Code{abi.InterpOpMove: plan.MOVE, abi.InterpOpSignal: plan.SIGNAL, abi.InterpOpWait: plan.WAIT,
		abi.InterpOpPostL: plan.POSTL, abi.InterpOpWaitL: plan.WAITL, abi.InterpOpLoop: plan.LOOP, abi.InterpOpRep: plan.REP, abi.InterpOpEnd: plan.END} {
		require.EqualValues(t, b, a)
	}
	for a, b := range map[abi.InterpKind]plan.Kind{abi.InterpKindIn: plan.In, abi.InterpKindOut: plan.Out, abi.InterpKindFifoSend: plan.FifoSend,
		abi.InterpKindFifoRecv: plan.FifoRecv, abi.InterpKindScratch: plan.Scratch, abi.InterpKindPeerScratch: plan.PeerScratch,
		abi.InterpKindPeerIn: plan.PeerIn, abi.InterpKindPeerOut: plan.PeerOut} {
		require.EqualValues(t, b, a)
	}
	require.EqualValues(t, plan.Pre, abi.InterpPre)
	require.EqualValues(t, plan.Post, abi.InterpPost)
	require.EqualValues(t, plan.Banks, abi.InterpBanks)
}

// owners says what every 64 bytes of all regions are for.
type owners struct {
	t  *testing.T
	l  gpu.Layout
	by map[uint64]string
}

// claim takes bytes for a purpose: they are in a region, and for no other one.
func (o owners) claim(at uint64, bytes int, who string) {
	o.t.Helper()
	require.LessOrEqual(o.t, int(at&(1<<40-1))+bytes, o.l.Bytes(), "%s", who)
	for p := at / 64; p*64 < at+uint64(bytes); p++ {
		require.Contains(o.t, []string{"", who}, o.by[p], "%#x", p*64)
		o.by[p] = who
	}
}

// TestBothEndsMeet checks what the ranks' images say of one FIFO: the slots are in
// the receiver's region, each end watches what the other posts, and no byte belongs
// to two.
func TestBothEndsMeet(t *testing.T) {
	const n = 4
	l := gputest.Small(n)
	o := owners{t, l, map[uint64]string{}}
	for _, k := range []plan.Key{
		gputest.KeyOf(l, goccl.AllReduce, goccl.TwoShot, goccl.LL, goccl.F32), gputest.KeyOf(l, goccl.AllReduce, goccl.TwoShot, goccl.Simple, goccl.F32),
		gputest.KeyOf(l, goccl.AllReduce, goccl.Ring, goccl.Simple, goccl.F32)} {
		ends := map[string]abi.InterpConn{} // the one that was seen first
		for r := range n {
			p, m := encodeKey(t, k, l, r)
			d := decode(t, m)
			for ch, x := range d.parts {
				states := map[uint32]bool{} // every channel has its own
				for i, c := range x.conns {
					conn := p.Conns[int(p.Rows[ch].ConnLo)+i]
					require.False(t, states[c.State])
					states[c.State] = true
					from, to := ranks(r, int(conn.Peer), conn.Send)
					require.EqualValues(t, to+1, c.Slots>>40, "slots are at the receiver")
					name := fmt.Sprintf("%v channel %d from %d to %d", k.Proto, ch, from, to)
					bytes := int(d.head.SlotBytes)
					o.claim(c.Slots, l.Slots*bytes, name+" slots")
					if k.Proto == goccl.LL && !conn.Send {
						require.Zero(t, c.Watch)
					} else {
						o.claim(c.Watch, 64, name+fmt.Sprintf(" watched by sender: %v", conn.Send))
					}
					if other, ok := ends[name]; ok {
						require.Equal(t, [3]uint64{other.Slots, other.Watch, other.Post}, [3]uint64{c.Slots, c.Post, c.Watch})
					}
					ends[name] = c
				}
			}
		}
	}
}

// TestSignalsMeet is that for signals.
func TestSignalsMeet(t *testing.T) {
	const n = 4
	l := gputest.Small(n)
	o := owners{t, l, map[uint64]string{}}
	k := gputest.KeyOf(l, goccl.AllReduce, goccl.TwoShot, goccl.Simple, goccl.F32)
	k.Window = plan.WindowBoth
	words := map[string]uint64{}
	for r := range n {
		p, m := encodeKey(t, k, l, r)
		for ch, x := range decode(t, m).parts {
			for i, s := range x.sigs {
				sig := p.Sigs[int(p.Rows[ch].SigLo)+i]
				from, to := ranks(r, int(sig.Peer), sig.Out)
				name := fmt.Sprintf("signal %d channel %d from %d to %d", sig.Word, ch, from, to)
				o.claim(s.Word, 64, name)
				o.claim(s.Call, 16, fmt.Sprintf("call channel %d from %d to %d", ch, from, to))
				require.EqualValues(t, to+1, s.Word>>40, "the word is at the one who waits")
				if w, ok := words[name]; ok {
					require.Equal(t, w, s.Word)
				}
				words[name] = s.Word
			}
		}
	}
}

// ranks orders two ranks by who sends.
func ranks(self, peer int, sends bool) (from, to int) {
	if sends {
		return self, peer
	}
	return peer, self
}

// TestImagesAreAsBefore compares images with the texts in testdata: their form is
// what compiled kernels read.
func TestImagesAreAsBefore(t *testing.T) {
	l := gputest.Small(3)
	window := gputest.KeyOf(l, goccl.AllReduce, goccl.TwoShot, goccl.Simple, goccl.F32)
	window.Window, window.Channels = plan.WindowBoth, 1
	for name, k := range map[string]plan.Key{
		"ring":    gputest.KeyOf(l, goccl.AllReduce, goccl.Ring, goccl.Simple, goccl.BF16),
		"oneshot": gputest.KeyOf(l, goccl.AllReduce, goccl.OneShot, goccl.LL, goccl.F32),
		"window":  window,
	} {
		k.Op = goccl.Avg
		_, m := encodeKey(t, k, l, 1)
		d := decode(t, m)
		var b strings.Builder
		fmt.Fprintf(&b, "%v\nkernel %s\nhead %+v\n", k, m.Kernel, d.head)
		write := func(name string, i int, v any) { fmt.Fprintf(&b, "%s %d %+v\n", name, i, v) }
		for i, v := range d.code {
			write("instr", i, v)
		}
		for i, v := range d.opnds {
			write("operand", i, v)
		}
		for i, v := range d.exprs {
			write("expr", i, v)
		}
		fmt.Fprintf(&b, "tables %v\nbases %#x\n", d.tables, d.bases)
		for ch, p := range d.parts {
			write("channel", ch, p.chans)
			for i, v := range p.conns {
				fmt.Fprintf(&b, "conn %d %#x\n", i, v)
			}
			for i, v := range p.sigs {
				fmt.Fprintf(&b, "sig %d %#x\n", i, v)
			}
		}
		for i := 0; i < len(m.Bytes); i += 16 {
			fmt.Fprintf(&b, "%04x %x\n", i, m.Bytes[i:i+16])
		}
		golden.File(t, "testdata/"+name+".txt", b.String())
	}
}

func TestEncodeRefuses(t *testing.T) {
	l := gputest.Small(3)
	good := gputest.KeyOf(l, goccl.AllReduce, goccl.Ring, goccl.Simple, goccl.F32)
	for _, c := range []struct {
		want error
		says string
		key  func(k *plan.Key)
		edit func(p *plan.Program, l *gpu.Layout)
	}{
		{goccl.ErrUnsupported, "sum of i32 on a GPU", func(k *plan.Key) { k.DType = goccl.I32 }, nil},
		{goccl.ErrUnsupported, "max of f32 on a GPU", func(k *plan.Key) { k.Op = goccl.Max }, nil},
		{goccl.ErrUnsupported, "200 channels; the regions have 3", func(k *plan.Key) { k.Channels = 200 }, nil},
		{goccl.ErrUnsupported, "slices of 2048 bytes; a FIFO slot has 1024", func(k *plan.Key) { k.Chunk = 2048 }, nil},
		{goccl.ErrUnsupported, "for a copy engine", nil, func(p *plan.Program, _ *gpu.Layout) {
			p.Lanes = append(p.Lanes, plan.Lane{Agent: plan.CEAgent, Mod: 1})
		}},
		{goccl.ErrUnsupported, "has 5 lanes", nil, func(p *plan.Program, _ *gpu.Layout) {
			for range 4 {
				p.Lanes = append(p.Lanes, plan.Lane{Mod: 1})
			}
		}},
		{goccl.ErrInvalid, "no lanes", nil, func(p *plan.Program, _ *gpu.Layout) { p.Lanes = nil }},
		{goccl.ErrInvalid, "in a layout for 4", nil, func(_ *plan.Program, l *gpu.Layout) { l.Ranks = 4 }},
		{goccl.ErrUnsupported, "connector 0 by ll in a Program by simple", nil, func(p *plan.Program, _ *gpu.Layout) { p.Conns[0].Proto = goccl.LL }},
		{goccl.ErrUnsupported, "tables of 70000 entries", nil, func(p *plan.Program, _ *gpu.Layout) {
			p.Tables = append(p.Tables, make([]uint32, 70000-len(p.Tables[0])))
		}},
		{goccl.ErrInvalid, "operands out of range", nil, func(p *plan.Program, _ *gpu.Layout) { p.Code[1].Src = 1000 }},
	} {
		k, l := good, l
		if c.key != nil {
			c.key(&k)
		}
		p, err := algo.Build(k, 0, gputest.Mapped(t, 3))
		require.NoError(t, err)
		if c.edit != nil {
			c.edit(p, &l)
		}
		_, err = gpu.Encode(p, l, bases(l.Ranks))
		require.ErrorIs(t, err, c.want)
		require.ErrorContains(t, err, c.says)
		require.ErrorContains(t, err, "rank 0")
	}
}

func TestLayoutCheck(t *testing.T) {
	for _, n := range []int{1, 2, 3, 8, 72, 1000} {
		l := gpu.DefaultLayout(n, 132)
		require.NoError(t, l.Check())
		require.LessOrEqual(t, l.Channels*l.Slots*l.Simple, 64<<20, "in flight toward a peer")
		require.LessOrEqual(t, l.Channels, 132)
	}
	require.Zero(t, gpu.DefaultLayout(1, 132).Bytes())
	require.Equal(t, 46, gpu.DefaultLayout(2, 46).Channels, "as many as run at a time")
	for says, edit := range map[string]func(l *gpu.Layout){
		"0 ranks":               func(l *gpu.Layout) { l.Ranks = 0 },
		"256 channels":          func(l *gpu.Layout) { l.Channels = 256 },
		"3 slots":               func(l *gpu.Layout) { l.Slots = 3 },
		"LL slots of 100":       func(l *gpu.Layout) { l.LL = 100 },
		"Simple slots of 1000":  func(l *gpu.Layout) { l.Simple = 1000 },
		"more than 16777216 by": func(l *gpu.Layout) { l.Simple = 32 << 20 },
	} {
		l := gpu.DefaultLayout(2, 132)
		edit(&l)
		err := l.Check()
		require.ErrorIs(t, err, goccl.ErrInvalid)
		require.ErrorContains(t, err, says)
	}
}
