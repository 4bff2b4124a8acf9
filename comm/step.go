package comm

import (
	"fmt"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/exec"
	"github.com/goccl/goccl/internal/simd"
)

// prepareTask prepares the parts of t and numbers it. Called with mu held.
func (c *Communicator) prepareTask(t *Task) error {
	if t.Coll != 0 {
		if err := c.prepare(&t.Call, &t.part); err != nil {
			return err
		}
		c.number(t, t.Coll != goccl.SendRecv)
		history := uint64(0)
		if t.seq > 0 {
			history = c.history
		}
		t.part.args.Sig = sign(&t.part, history)
		t.sig = t.part.args.Sig
		return nil
	}
	return c.prepareBatch(t)
}

// number gives a collective the next number, which all ranks share; a transfer
// has none.
func (c *Communicator) number(t *Task, collective bool) {
	t.seq = 0
	if collective {
		c.seq++
		t.seq = c.seq
	}
}

// remember mixes a collective into the history, which signs all later ones: a
// disagreement that went unseen, because no rank had to wait for another, is found
// when the ranks next meet.
func (c *Communicator) remember(t *Task) {
	if t.seq > 0 {
		c.history = mix(c.history ^ uint64(t.sig) ^ t.seq<<32)
	}
}

// sign makes the signature of a call: of what it does, and of where it stands.
func sign(p *part, place uint64) uint32 { return uint32(mix(p.sign^place)) | 1 }

// prepareBatch prepares every call of a batch. Transfers with one peer in one
// direction share a FIFO, so they run one after the other; so do collectives.
func (c *Communicator) prepareBatch(t *Task) error {
	t.parts, t.sig = t.parts[:0], 0
	collective := t.As != 0
	for i := range t.Batch {
		collective = collective || t.Batch[i].Coll != goccl.SendRecv
	}
	for i := range t.Batch {
		call := &t.Batch[i]
		if call.Coll == 0 {
			return fmt.Errorf("%w: a batch inside a batch", goccl.ErrInvalid)
		}
		t.parts = append(t.parts, part{})
		p := &t.parts[len(t.parts)-1]
		if call.Coll == goccl.SendRecv && call.Root == c.rank {
			if err := c.prepareSelf(t, i, p); err != nil {
				return err
			}
			continue
		}
		if err := c.prepare(call, p); err != nil {
			return fmt.Errorf("call %d of the batch: %w", i, err)
		}
		if call.Coll == goccl.SendRecv {
			p.chain = 1 + 2*call.Root
			if call.Send {
				p.chain++
			}
		}
	}
	c.number(t, collective)
	c.signBatch(t)
	return nil
}

// signBatch signs the parts. Collectives are told apart by their place among the
// batch's collectives; transfers are anonymous, unless the batch as a whole is a
// collective.
func (c *Communicator) signBatch(t *Task) {
	at := uint64(0)
	for i := range t.parts {
		p, seq := &t.parts[i], uint64(0)
		if t.Batch[i].Coll != goccl.SendRecv {
			at++
			seq = c.history ^ at
		} else if t.As != 0 {
			seq = c.history ^ uint64(t.As)<<8
		}
		p.args.Sig = sign(p, seq)
		// The whole is signed by what all ranks share: not by its transfers.
		if t.Batch[i].Coll != goccl.SendRecv {
			t.sig = uint32(mix(uint64(t.sig)<<32 | uint64(p.args.Sig)))
		}
	}
	if t.As != 0 {
		t.sig = uint32(mix(c.history ^ t.seq<<8 ^ uint64(t.As)))
	}
}

// prepareSelf makes a send to this rank and its receive a copy: the receive does
// it, the send is nothing. They are matched in order.
func (c *Communicator) prepareSelf(t *Task, i int, p *part) error {
	p.self = true
	call := &t.Batch[i]
	before, matched := 0, false
	for j := range t.Batch[:i] {
		if o := &t.Batch[j]; o.Coll == goccl.SendRecv && o.Root == c.rank && o.Send == call.Send {
			before++
		}
	}
	for j := range t.Batch {
		o := &t.Batch[j]
		if o.Coll != goccl.SendRecv || o.Root != c.rank || o.Send == call.Send {
			continue
		}
		if before > 0 {
			before--
			continue
		}
		matched = true
		s, d := call.Src, o.Dst
		if !call.Send {
			s, d = o.Src, call.Dst
		}
		if s.DType != d.DType || s.Count != d.Count {
			return fmt.Errorf("%w: rank %d sends itself %v[%d] and receives %v[%d]", goccl.ErrMismatch, c.rank, s.DType, s.Count, d.DType, d.Count)
		}
		p.args = exec.Args{In: s.Addr, Out: d.Addr, Unit: int64(s.Bytes())}
		p.ended = call.Send
		break
	}
	if !matched {
		return fmt.Errorf("%w: rank %d sends to or receives from itself without the other side in the same batch", goccl.ErrInvalid, c.rank)
	}
	return nil
}

// step runs t as far as it goes. Called with the token held.
func (c *Communicator) step(t *Task) (ended, moved bool, err error) {
	if t.Coll != 0 {
		return c.stepPart(&t.part)
	}
	return c.stepBatch(t)
}

func (c *Communicator) stepPart(p *part) (ended, moved bool, err error) {
	if !p.begun {
		if begun, err := c.beginPart(p); !begun {
			return false, false, err
		}
		p.begun = true
	}
	ended, moved, err = p.run.Step()
	p.ended = ended
	return ended, moved, err
}

// beginPart gives p a run; false without an error while it is being connected.
func (c *Communicator) beginPart(p *part) (bool, error) {
	if p.bound == nil {
		if ready, err := c.bind(p); !ready {
			return false, err
		}
	}
	if p.run == nil { // a single call keeps its run for the next time
		if n := len(c.runs); n > 0 {
			p.run, c.runs = c.runs[n-1], c.runs[:n-1]
		} else {
			p.run = new(exec.Run)
		}
	}
	err := p.run.Begin(c.exec, p.bound, p.args)
	return err == nil, err
}

// stepBatch steps the first unfinished part of every chain.
func (c *Communicator) stepBatch(t *Task) (ended, moved bool, err error) {
	ended = true
	clear(c.busy)
	for i := range t.parts {
		p := &t.parts[i]
		if p.ended || c.busy[p.chain] {
			continue
		}
		if p.self {
			simd.Copy(p.args.Out, p.args.In, int(p.args.Unit))
			p.ended, moved = true, true
			continue
		}
		e, m, err := c.stepPart(p)
		if err != nil {
			return false, moved, err
		}
		moved = moved || m
		if !e {
			ended = false
			c.busy[p.chain] = true
			continue
		}
		c.runs = append(c.runs, p.run) // for the next part of the chain
		p.run = nil
	}
	return ended, moved, nil
}

// abandon lets go of the runs of an operation that will not go on.
func (c *Communicator) abandon(t *Task) {
	t.part.run, t.part.binding = nil, nil
	for i := range t.parts {
		t.parts[i].run, t.parts[i].binding = nil, nil
	}
}
