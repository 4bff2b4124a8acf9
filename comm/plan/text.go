package plan

import (
	"fmt"
	"strings"
)

// String returns the Program as text, for goldens and for people: header,
// geometry, then the instructions of each lane with their operands spelled out,
// then what differs between channels.
func (p *Program) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v\nrank %d of %d, %v, grain %d, chunk %d, slices %d, chunks an iteration %d", p.Key, p.Rank, p.NRanks,
		p.Geom.Base, p.Geom.Grain, p.Geom.ChunkBytes, p.Geom.Slices, p.Geom.D)
	if p.Rendezvous {
		b.WriteString(", rendezvous")
	}
	b.WriteString("\n")
	for i, l := range p.Lanes {
		fmt.Fprintf(&b, "lane %d, %v, channels %d mod %d\n", i, l.Agent, l.Rem, l.Mod)
		indent := 1
		for pc := l.Lo; pc < l.Hi; pc++ {
			in := &p.Code[pc]
			if in.Op == END {
				indent = max(indent-1, 1)
			}
			fmt.Fprintf(&b, "%4d%s%s\n", pc, strings.Repeat("  ", indent), p.instrText(in))
			if in.Op == LOOP || in.Op == REP {
				indent++
			}
		}
	}
	for ch, r := range p.Rows {
		fmt.Fprintf(&b, "channel %d:", ch)
		for i := range p.numbers() {
			fmt.Fprintf(&b, " p%d=%d", i, r.P[i])
		}
		for i, c := range p.Conns[r.ConnLo : r.ConnLo+r.ConnN] {
			dir := "from"
			if c.Send {
				dir = "to"
			}
			fmt.Fprintf(&b, ", conn %d %s %d", i, dir, c.Peer)
		}
		for i, s := range p.Sigs[r.SigLo : r.SigLo+r.SigN] {
			dir := "waits for"
			if s.Out {
				dir = "rings"
			}
			fmt.Fprintf(&b, ", signal %d.%d %s %d", i, s.Word, dir, s.Peer)
		}
		b.WriteString("\n")
	}
	for i, t := range p.Tables {
		fmt.Fprintf(&b, "table %d: %v\n", i, t)
	}
	return b.String()
}

// numbers returns how many numbers of a row the expressions use.
func (p *Program) numbers() int {
	n := 0
	for _, x := range p.Exprs {
		n = max(n, int(x.P)+1)
	}
	return n
}

// String returns "whole" or "per rank".
func (b Base) String() string {
	if b == PerRank {
		return "per rank"
	}
	return "whole"
}

var agentNames = [...]string{"host", "sm", "ce"}

// String returns the name in lower case.
func (a Agent) String() string {
	if int(a) >= len(agentNames) {
		return fmt.Sprintf("agent(%d)", uint8(a))
	}
	return agentNames[a]
}

func (p *Program) instrText(in *Instr) string {
	switch in.Op {
	case MOVE:
		s := fmt.Sprintf("MOVE  %s = %s", p.operandsText(in.Dst, in.NDst, ", "), p.operandsText(in.Src, in.NSrc, " + "))
		if in.Flags&Pre != 0 {
			s += " PRE"
		}
		if in.Flags&Post != 0 {
			s += " POST"
		}
		return s + fmt.Sprintf("  (length of %s)", p.exprText(in.Chunk))
	case SIGNAL, WAIT, POSTL, WAITL:
		return fmt.Sprintf("%-6v %d by %d", in.Op, in.Word, in.Delta)
	case REP:
		return fmt.Sprintf("REP   %s", p.exprText(in.Chunk))
	}
	return in.Op.String()
}

func (p *Program) operandsText(first uint16, n uint8, sep string) string {
	var s []string
	for _, o := range p.Opnds[first : int(first)+int(n)] {
		switch o.Kind {
		case FifoSend, FifoRecv:
			s = append(s, fmt.Sprintf("%v%d", o.Kind, o.Conn))
		case Scratch:
			s = append(s, fmt.Sprintf("scratch[%s]", p.exprText(o.Slot)))
		case PeerScratch:
			s = append(s, fmt.Sprintf("peer %s scratch[%s]", p.exprText(o.Peer), p.exprText(o.Slot)))
		case PeerIn, PeerOut:
			s = append(s, fmt.Sprintf("peer %s %s[%s]", p.exprText(o.Peer), o.Kind.String()[4:], p.exprText(o.Chunk)))
		default:
			s = append(s, fmt.Sprintf("%v[%s]", o.Kind, p.exprText(o.Chunk)))
		}
	}
	return strings.Join(s, sep)
}

func (p *Program) exprText(e uint16) string {
	x := p.Exprs[e]
	var s string
	if x.P >= 0 {
		s = fmt.Sprintf("p%d", x.P)
	}
	if x.A != 0 || x.P < 0 {
		s += fmt.Sprintf("%+d", x.A)
	}
	switch x.B {
	case 0:
	case 1:
		s += "+j"
	case -1:
		s += "-j"
	default:
		s += fmt.Sprintf("%+d*j", x.B)
	}
	s = strings.TrimPrefix(s, "+")
	if x.M > 0 && (x.A != 0 && x.P >= 0 || x.B != 0) {
		s = "(" + s + ")"
	}
	if x.M > 0 {
		s += fmt.Sprintf("%%%d", x.M)
	}
	if x.T >= 0 {
		s = fmt.Sprintf("t%d(%s)", x.T, s)
	}
	return s
}
