package bucket

import (
	"bytes"
	"context"
	"fmt"

	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/process_group"
)

// What ranks tell each other besides gradients lies in host memory. A group that
// moves host memory takes it as operations; beside a device's operations there is
// Group.Exchange.

// maxExchange is what Group.Exchange takes.
const maxExchange = 1 << 20

// tell gives the bytes of every rank, as many on each, to all, and returns them by
// rank. It is collective and blocks.
func (r *Reducer) tell(ctx context.Context, what string, mine []byte) ([][]byte, error) {
	n := r.g.Size()
	all := make([][]byte, n)
	if r.dev == nil {
		joined := make([]byte, n*len(mine))
		label := processgroup.Label("bucket: " + what)
		if err := r.g.AllGatherInto(device.SliceOf(joined), device.SliceOf(mine), label).Wait(ctx); err != nil {
			return nil, err
		}
		for q := range all {
			all[q] = joined[q*len(mine):][:len(mine)]
		}
		return all, nil
	}
	for from := 0; from < len(mine); from += maxExchange {
		parts, err := r.g.Exchange(ctx, mine[from:min(from+maxExchange, len(mine))])
		if err != nil {
			return nil, fmt.Errorf("%w\n\tin bucket: %s", err, what)
		}
		for q := range all {
			all[q] = append(all[q], parts[q]...)
		}
	}
	return all, nil
}

// follow returns the bytes of rank 0 on every rank, which all have as many. It is
// collective and blocks.
func (r *Reducer) follow(ctx context.Context, what string, mine []byte) ([]byte, error) {
	if r.dev == nil {
		return mine, r.g.Broadcast(device.SliceOf(mine), 0, processgroup.Label("bucket: "+what)).Wait(ctx)
	}
	all, err := r.tell(ctx, what, mine)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// aside is an exchange that nobody waits for yet. The exchanges of a Reducer come one
// after the other, in the order in which they are started.
type aside struct {
	done chan struct{}
	all  [][]byte
	err  error
}

// startAside gives mine to all ranks. It ends at the latest when the group fails.
func (r *Reducer) startAside(mine []byte) *aside {
	a, before := &aside{done: make(chan struct{})}, r.dev.asides
	r.dev.asides = a
	data := bytes.Clone(mine)
	go func() {
		defer close(a.done)
		if before != nil {
			<-before.done
		}
		a.all, a.err = r.g.Exchange(r.g.Context(), data)
	}()
	return a
}

// Test reports whether the exchange has ended, and how.
func (a *aside) Test() (bool, error) {
	select {
	case <-a.done:
		return true, a.err
	default:
		return false, nil
	}
}

// Wait blocks until it has ended or ctx ends.
func (a *aside) Wait(ctx context.Context) error {
	select {
	case <-a.done:
		return a.err
	case <-ctx.Done():
		return fmt.Errorf("wait for an exchange: %w", context.Cause(ctx))
	}
}
