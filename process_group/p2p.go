package processgroup

import (
	"fmt"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
)

// Send sends b to rank to of the group, which must call Recv with as many
// elements of the same type. Messages between two ranks match in order. Operations
// run in the order of the calls, so two ranks that both send first may wait for
// each other when the messages are large: put the two transfers into one
// BatchSendRecv.
func (g *Group) Send(b device.Buffer, to int, o ...Option) Work { return g.transfer(b, to, true, o) }

// Recv receives b from rank from of the group; see Send.
func (g *Group) Recv(b device.Buffer, from int, o ...Option) Work {
	return g.transfer(b, from, false, o)
}

func (g *Group) transfer(b device.Buffer, peer int, send bool, o []Option) Work {
	s := g.settings(o)
	err := checkBuffers(&s, b)
	if err == nil {
		err = g.checkRank(peer)
	}
	x, w := g.call(goccl.SendRecv, &s)
	if x == nil {
		return w
	}
	x.Root, x.Send = peer, send
	if err == nil && peer == g.cfg.Rank && g.open == nil {
		err = fmt.Errorf("%w: rank %d would wait for itself; put a send and a receive to oneself into one BatchSendRecv", goccl.ErrInvalid, peer)
	}
	if err != nil {
		return g.reject(x, err)
	}
	if send {
		x.Src = b
	} else {
		x.Dst = b
	}
	return g.launch(x)
}

// BatchSendRecv runs all transfers as one operation: none waits for another, so
// their order among different peers does not matter. Transfers between two ranks
// match in the order of the list. A transfer to oneself needs both sides in the
// same list. An empty batch has ended at once.
func (g *Group) BatchSendRecv(ops []P2P, o ...Option) Work {
	s := g.settings(o)
	if err := g.checkBatch(&s, ops); err != nil {
		return g.refuse(goccl.SendRecv, &s, err)
	}
	x, w := g.call(goccl.SendRecv, &s)
	if x == nil {
		return w
	}
	if len(ops) == 0 && g.open == nil {
		return g.nothing(x)
	}
	x.Batch = append(x.Batch, ops...)
	return g.launch(x)
}

func (c *core) checkBatch(s *settings, ops []P2P) error {
	if err := checkPlain(s); err != nil {
		return err
	}
	for i := range ops {
		err := checkBuffers(s, ops[i].Buf)
		if err == nil {
			err = c.checkRank(ops[i].Peer)
		}
		if err != nil {
			return fmt.Errorf("transfer %d of the batch: %w", i, err)
		}
	}
	return c.checkSelf(ops)
}

// checkSelf holds the transfers of this rank to itself against each other: send i
// goes to receive i.
func (c *core) checkSelf(ops []P2P) error {
	var sent, got []device.Buffer
	for i := range ops {
		switch {
		case ops[i].Peer != c.cfg.Rank:
		case ops[i].Recv:
			got = append(got, ops[i].Buf)
		default:
			sent = append(sent, ops[i].Buf)
		}
	}
	if len(sent) != len(got) {
		return fmt.Errorf("%w: rank %d sends itself %d messages and receives %d", goccl.ErrInvalid, c.cfg.Rank, len(sent), len(got))
	}
	for i := range sent {
		if sent[i].Count != got[i].Count || sent[i].DType != got[i].DType {
			return fmt.Errorf("%w: message %d of rank %d to itself is %d %v and is received as %d %v", goccl.ErrInvalid, i, c.cfg.Rank,
				sent[i].Count, sent[i].DType, got[i].Count, got[i].DType)
		}
		if sent[i].Overlaps(got[i]) {
			return fmt.Errorf("%w: message %d of rank %d to itself overlaps its receiver", goccl.ErrInvalid, i, c.cfg.Rank)
		}
	}
	return nil
}
