package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goccl/goccl/device/cuda"
	"github.com/goccl/goccl/dist"
	processgroup "github.com/goccl/goccl/process_group"
)

// side is one of the systems that are timed: a group, and how its operations are.
type side struct {
	name  string // "ccl", "nccl", "nccl 32 CTAs"
	about string // a line for the head of the table; may be empty
	g     *dist.Group
	// stream is where operations on a GPU are queued: as in nccl-tests a batch is
	// queued whole, and its time ends when the stream is done. nil: the host waits
	// for each operation.
	stream *cuda.Stream
}

// batch runs iters operations of t and returns how long they took on this rank.
// With a graph they are one replay of it.
func (s *side) batch(ctx context.Context, t *task, iters int, graph *cuda.Executable) (time.Duration, error) {
	if s.stream == nil {
		began := time.Now()
		for range iters {
			if err := t.start().Wait(ctx); err != nil {
				return 0, err
			}
		}
		return time.Since(began), nil
	}
	works := make([]processgroup.Work, 0, iters)
	began := time.Now()
	if graph != nil {
		if err := s.replay(graph); err != nil {
			return 0, err
		}
	} else {
		for range iters {
			works = append(works, t.start())
		}
		// The last of a group ends last; it may run on another stream.
		if err := works[iters-1].Join(s.stream); err != nil {
			return 0, errors.Join(err, processgroup.WaitAll(ctx, works...))
		}
	}
	if err := s.stream.Sync(ctx); err != nil {
		return 0, errors.Join(err, processgroup.WaitAll(ctx, works...))
	}
	took := time.Since(began)
	return took, processgroup.WaitAll(ctx, works...)
}

func (s *side) replay(graph *cuda.Executable) error {
	sec, err := s.stream.Enter()
	if err != nil {
		return err
	}
	defer sec.Leave()
	return sec.Replay(graph)
}

// capture records a batch of each side as a graph, when graphs are asked for; else
// its graphs are nil.
func (t *task) capture(ctx context.Context, sides []*side, iters []int) ([]*cuda.Executable, error) {
	graphs := make([]*cuda.Executable, len(sides))
	if !t.o.graph {
		return graphs, nil
	}
	for i, s := range sides {
		if s.stream == nil {
			continue
		}
		t.g = s.g
		var works []processgroup.Work
		graph, err := s.stream.Capture(func() error {
			for range iters[i] {
				works = append(works, t.start())
			}
			return works[len(works)-1].Join(s.stream)
		})
		if err == nil {
			err = processgroup.WaitAll(ctx, works...)
		}
		if err == nil {
			graphs[i], err = graph.Instantiate()
		}
		if graph != nil {
			err = errors.Join(err, graph.Close())
		}
		if err != nil {
			closeGraphs(graphs)
			return nil, fmt.Errorf("%s: graph of %d operations: %w", s.name, iters[i], err)
		}
	}
	return graphs, nil
}

func closeGraphs(graphs []*cuda.Executable) {
	for _, x := range graphs {
		if x != nil {
			_ = x.Close() // what was measured stands
		}
	}
}
