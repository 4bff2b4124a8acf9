package transporttest

import (
	"context"
	"fmt"

	"github.com/goccl/goccl/internal/spin"
)

// SendSteps posts the next steps of the link's sender.
func (l *Link) SendSteps(ctx context.Context, steps int) error {
	w := spin.Waiter{Policy: spin.Policy{Local: true, Word: l.Send.CreditBell()}}
	defer w.Reset()
	for range steps {
		for !l.Send.Ready() {
			if err := stuck(ctx, l.SendSide.Err()); err != nil {
				return fmt.Errorf("sending step %d of %s: %w", l.Send.Step(), l.Conn, err)
			}
			w.Turn()
		}
		w.Reset()
		step := l.Send.Step()
		n := length(l.Conn.FIFO, step)
		Fill(l.Send.Payload(), n, l.Conn, step)
		l.Send.Post(n, signature(step))
	}
	return nil
}

// RecvSteps takes the next steps of the link's receiver and compares them with
// what SendSteps posts.
func (l *Link) RecvSteps(ctx context.Context, steps int) error {
	w := spin.Waiter{Policy: spin.Policy{Local: true, Word: l.Recv.Bell()}}
	defer w.Reset()
	for range steps {
		for !l.Recv.Ready() {
			err := stuck(ctx, l.RecvSide.Err())
			if err != nil && !l.Recv.Ready() { // what came before the end counts
				return fmt.Errorf("receiving step %d of %s: %w", l.Recv.Step(), l.Conn, err)
			}
			w.Turn()
		}
		w.Reset()
		step := l.Recv.Step()
		addr, bytes, sig := l.Recv.Peek()
		if bytes != length(l.Conn.FIFO, step) || sig != signature(step) {
			return fmt.Errorf("step %d of %s: %d bytes with signature %#x, want %d and %#x", step, l.Conn, bytes, sig,
				length(l.Conn.FIFO, step), signature(step))
		}
		if at := Same(addr, bytes, l.Conn, step); at >= 0 {
			return fmt.Errorf("step %d of %s: byte %d of %d differs", step, l.Conn, at, bytes)
		}
		l.Recv.Release()
	}
	return nil
}

// Pass sends steps through the link and compares them.
func (l *Link) Pass(ctx context.Context, steps int) error {
	sent := make(chan error, 1)
	go func() { sent <- l.SendSteps(ctx, steps) }()
	if err := l.RecvSteps(ctx, steps); err != nil {
		return err
	}
	return <-sent
}

func stuck(ctx context.Context, broken error) error {
	if broken != nil {
		return broken
	}
	return ctx.Err()
}
