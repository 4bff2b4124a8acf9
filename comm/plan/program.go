package plan

import (
	"fmt"

	"github.com/goccl/goccl"
)

// Code is an instruction's operation.
type Code uint8

// The instructions; the package comment says what each does.
const (
	MOVE Code = iota + 1
	SIGNAL
	WAIT
	POSTL
	WAITL
	LOOP
	REP
	END

	numCodes = iota + 1
)

var codeNames = [numCodes]string{"?", "MOVE", "SIGNAL", "WAIT", "POSTL", "WAITL", "LOOP", "REP", "END"}

// String returns the name in capitals.
func (c Code) String() string {
	if c >= numCodes {
		return fmt.Sprintf("code(%d)", uint8(c))
	}
	return codeNames[c]
}

// Flags of an instruction.
const (
	Pre  uint8 = 1 << iota // scale sources of kind In by the operation's factor
	Post                   // divide the result by the number of ranks
)

// Instr is one instruction. Operands are runs in Program.Opnds.
type Instr struct {
	Op    Code
	Flags uint8
	NSrc  uint8
	NDst  uint8
	Src   uint16 // first source operand
	Dst   uint16 // first destination operand
	Chunk uint16 // MOVE: expression of the chunk whose length is moved; REP: of the count
	Word  uint16 // SIGNAL, WAIT: index into the channel's signals; POSTL, WAITL: semaphore
	Delta uint32 // what SIGNAL and POSTL add, what WAIT and WAITL take
}

// Kind is what an operand names.
type Kind uint8

// The operand kinds. FIFO operands have no offset: slots follow each other.
const (
	In          Kind = iota + 1 // this rank's input, at a chunk
	Out                         // this rank's output, at a chunk
	FifoSend                    // next slot toward a peer
	FifoRecv                    // next slot from a peer
	Scratch                     // slot of this rank's scratch
	PeerScratch                 // slot of a peer's scratch
	PeerIn                      // a peer's input, at a chunk (window)
	PeerOut                     // a peer's output, at a chunk (window)

	numKinds = iota + 1
)

var kindNames = [numKinds]string{"?", "in", "out", "send", "recv", "scratch", "peerscratch", "peerin", "peerout"}

// String returns the name in lower case.
func (k Kind) String() string {
	if k >= numKinds {
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
	return kindNames[k]
}

// Operand names a place. Conn, Peer, Slot and Chunk are used as Kind needs them.
type Operand struct {
	Kind  Kind
	Conn  uint16 // FIFO: index into the channel's connectors
	Peer  uint16 // expression: rank
	Slot  uint16 // expression: scratch slot
	Chunk uint16 // expression: chunk (Whole) or block (PerRank)
}

// Expr is value = T[(P[p] + a + b*j) mod m]: small enough that one list of
// instructions serves every rank and every channel.
type Expr struct {
	A, B int32
	M    int32 // 0: no modulus
	P    int8  // row number, -1: none
	T    int8  // table, -1: none
}

// Row is what differs between channels: numbers for expressions, and where the
// channel's connectors and signals are.
type Row struct {
	P      [8]int32
	ConnLo uint16
	ConnN  uint16
	SigLo  uint16
	SigN   uint16
}

// Conn is one end of a FIFO that a channel uses.
type Conn struct {
	Peer  int32
	Send  bool
	Index uint8 // 0 collective, 1 send and receive
	Proto goccl.Protocol
}

// Sig is one end of a cross-rank signal: a word that only one rank adds to and
// only one rank takes from.
type Sig struct {
	Peer int32
	Out  bool  // this rank adds
	Word uint8 // which of the words between the two ranks, per channel
}

// Words is the number of signal words from one rank to another in a channel.
const Words = 2

// Banks is the number of scratch banks.
const Banks = 2

// Agent runs a lane.
type Agent uint8

// The agents.
const (
	HostAgent Agent = iota // a goroutine of the host
	SMAgent                // warps of a GPU
	CEAgent                // a copy engine
)

// Lane is a range of code, run by one agent in every channel with
// channel mod Mod == Rem.
type Lane struct {
	Agent    Agent
	Mod, Rem uint8
	Lo, Hi   uint16
}

// Program is what one rank does. It is immutable once built.
type Program struct {
	Key    Key
	Rank   int
	NRanks int
	Geom   Geom
	Lanes  []Lane
	Code   []Instr
	Opnds  []Operand
	Exprs  []Expr
	Rows   []Row // one per channel
	Conns  []Conn
	Sigs   []Sig
	Tables [][]uint32
	Sems   int
	// Rendezvous: the end on any rank happens after the start on every peer.
	// The checker derives it; Programs that use scratch must have it.
	Rendezvous bool
}

// Eval returns the value of expression e in channel ch at inner counter j.
func (p *Program) Eval(e uint16, ch, j int) int {
	x := &p.Exprs[e]
	v := x.A + x.B*int32(j)
	if x.P >= 0 {
		v += p.Rows[ch].P[x.P]
	}
	if x.M > 0 {
		if v %= x.M; v < 0 {
			v += x.M
		}
	}
	if x.T >= 0 {
		return int(p.Tables[x.T][v])
	}
	return int(v)
}

// UsesScratch reports whether any operand is in scratch.
func (p *Program) UsesScratch() bool {
	for _, o := range p.Opnds {
		if o.Kind == Scratch || o.Kind == PeerScratch {
			return true
		}
	}
	return false
}

// Loops reports whether the Program iterates over chunks. One that does not
// serves messages of one iteration only.
func (p *Program) Loops() bool {
	for _, i := range p.Code {
		if i.Op == LOOP {
			return true
		}
	}
	return false
}
