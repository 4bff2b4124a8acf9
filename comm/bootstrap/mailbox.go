package bootstrap

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/wire"
)

// unreadLimit is how many bytes of messages may wait for their Recv.
const unreadLimit = 64 << 20

type boxKey struct {
	peer int
	tag  uint64
}

// mail is what other ranks have sent and this one has not yet received.
type mail struct {
	boxes  map[boxKey]*box
	unread int // bytes
}

// box holds the messages of one (peer, tag) that nobody has asked for, or the
// receivers that wait for one; never both.
type box struct {
	messages [][]byte
	waiters  []chan message
}

type message struct {
	data []byte
	err  error
}

// Send hands data, at most 1 MiB, to the hub for peer. It returns as soon as the
// message is queued; data may then be reused. Messages of one (peer, tag) arrive
// in the order sent. It blocks only while the connection is congested, until ctx
// ends, and fails at once when peer is gone. A message to this rank itself is
// allowed.
func (s *Session) Send(ctx context.Context, peer int, tag uint64, data []byte) error {
	if err := s.checkPeer("send", peer); err != nil {
		return err
	}
	if len(data) > wire.MaxData {
		return s.refuse("send", fmt.Errorf("%w: %d bytes, at most %d", goccl.ErrInvalid, len(data), wire.MaxData))
	}
	s.mu.Lock()
	err := s.end
	if ev, gone := s.gone[peer]; err == nil && gone {
		err = s.goneError(ev)
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	if peer == s.cfg.Rank {
		return s.deliverMessage(wire.Relay{Rank: peer, Tag: tag, Data: bytes.Clone(data)})
	}
	ctx, cancel := s.bound(ctx)
	defer cancel()
	if s.out.pushWait(ctx, wire.Append(nil, wire.Relay{Rank: peer, Tag: tag, Data: data})) != nil {
		return s.waitError(ctx, "send", peer)
	}
	return nil
}

// Recv returns the next message from peer with this tag; it belongs to the caller.
// It blocks until one arrives, ctx ends, or peer is gone and all that it sent has
// been received.
func (s *Session) Recv(ctx context.Context, peer int, tag uint64) ([]byte, error) {
	if err := s.checkPeer("recv", peer); err != nil {
		return nil, err
	}
	ctx, cancel := s.bound(ctx)
	defer cancel()
	key := boxKey{peer, tag}
	data, wait, err := s.ask(key)
	if wait == nil {
		return data, err
	}
	select {
	case m := <-wait:
		return m.data, m.err
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case m := <-wait: // it came just now and must not be lost
		return m.data, m.err
	default:
	}
	if b := s.mail.boxes[key]; b != nil {
		b.waiters = slices.DeleteFunc(b.waiters, func(w chan message) bool { return w == wait })
		s.tidy(key, b)
	}
	return nil, s.waitError(ctx, "recv", peer)
}

// ask takes a message if there is one, or returns the channel on which it, or an
// error, will come.
func (s *Session) ask(key boxKey) ([]byte, chan message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.mail.boxes[key]
	if b != nil && len(b.messages) > 0 {
		data := b.messages[0]
		b.messages = b.messages[1:]
		s.mail.unread -= len(data)
		s.tidy(key, b)
		return data, nil, nil
	}
	if s.end != nil {
		return nil, nil, s.end
	}
	if ev, gone := s.gone[key.peer]; gone {
		return nil, nil, s.goneError(ev)
	}
	if b == nil {
		b = &box{}
		s.mail.boxes[key] = b
	}
	w := make(chan message, 1)
	b.waiters = append(b.waiters, w)
	return nil, w, nil
}

// deliverMessage gives a message to the oldest receiver, or keeps it. It fails when
// too much is kept.
func (s *Session) deliverMessage(m wire.Relay) error {
	if take := s.cfg.OnMessage; take != nil && take(m.Rank, m.Tag, m.Data) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := boxKey{m.Rank, m.Tag}
	b := s.mail.boxes[key]
	if b != nil && len(b.waiters) > 0 {
		b.waiters[0] <- message{data: m.Data}
		b.waiters = b.waiters[1:]
		s.tidy(key, b)
		return nil
	}
	if s.mail.unread+len(m.Data) > unreadLimit {
		return s.refuse("recv", fmt.Errorf("%w: more than %d MiB of messages wait here for a Recv, the last from rank %d with tag %d", goccl.ErrInvalid, unreadLimit>>20, m.Rank, m.Tag))
	}
	if b == nil {
		b = &box{}
		s.mail.boxes[key] = b
	}
	b.messages = append(b.messages, m.Data)
	s.mail.unread += len(m.Data)
	return nil
}

// failBoxes ends the receivers of the boxes that match. mu is held.
func (s *Session) failBoxes(match func(boxKey) bool, why func() error) {
	for key, b := range s.mail.boxes {
		if !match(key) {
			continue
		}
		for _, w := range b.waiters {
			w <- message{err: why()}
		}
		b.waiters = nil
		s.tidy(key, b)
	}
}

// tidy forgets a box that holds nothing, so that tags may be used once. mu is held.
func (s *Session) tidy(key boxKey, b *box) {
	if len(b.messages) == 0 && len(b.waiters) == 0 {
		delete(s.mail.boxes, key)
	}
}

func (s *Session) checkPeer(op string, peer int) error {
	if peer < 0 || peer >= s.cfg.Size {
		return s.refuse(op, fmt.Errorf("%w: rank %d not below world %d", goccl.ErrInvalid, peer, s.cfg.Size))
	}
	return nil
}
