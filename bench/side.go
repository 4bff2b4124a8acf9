package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/goccl/goccl/device/cuda"
	"github.com/goccl/goccl/dist"
	processgroup "github.com/goccl/goccl/process_group"
)

// side is one of the systems that are timed: a group, and how its operations are.
type side struct {
	name  string // "ccl", "nccl", "nccl direct 32 CTAs"
	about string // a line for the head of the table; may be empty
	g     *dist.Group
	// stream is where operations on a GPU are queued: as in nccl-tests a batch is
	// queued whole, and its time ends when the stream is done. nil: the host waits
	// for each operation.
	stream *cuda.Stream
	// direct makes the calls instead of g; nil: g does.
	direct *direct
	clock  *clock // of the GPU, to take a batch's time from; nil: the host's
	works  []processgroup.Work
}

// once runs one operation of t.
func (s *side) once(ctx context.Context, t *task) error {
	if s.direct == nil {
		return t.start().Wait(ctx)
	}
	if err := s.direct.queue(s.stream, t, 1); err != nil {
		return err
	}
	return s.drain(ctx)
}

// batch runs iters operations of t and returns how long they took on this rank.
// With a graph they are one replay of it.
func (s *side) batch(ctx context.Context, t *task, iters int, graph *cuda.Executable) (time.Duration, error) {
	began := time.Now()
	if s.stream == nil {
		for range iters {
			if err := t.start().Wait(ctx); err != nil {
				return 0, err
			}
		}
		return time.Since(began), nil
	}
	s.works = s.works[:0]
	err := s.clock.start(s.stream)
	if err == nil && graph != nil {
		err = s.replay(graph)
	} else if err == nil {
		err = s.queue(t, iters)
	}
	err = errors.Join(err, s.clock.stop(s.stream))
	if err == nil {
		err = s.drain(ctx)
	}
	took := time.Since(began)
	if err == nil {
		took, err = s.clock.read(took)
	}
	return took, errors.Join(err, processgroup.WaitAll(ctx, s.works...))
}

// queue starts iters operations, none of which the host waits for, and has the stream
// wait for all.
func (s *side) queue(t *task, iters int) error {
	if s.direct != nil {
		return s.direct.queue(s.stream, t, iters)
	}
	for range iters {
		s.works = append(s.works, t.start())
	}
	// The last of a group ends last; it may run on another stream.
	return s.works[iters-1].Join(s.stream)
}

// drain returns when the stream is empty. It asks all the time, as nccl-tests does:
// a sleep would be part of the time of the batch.
func (s *side) drain(ctx context.Context) error {
	e, err := s.stream.Record()
	if err != nil {
		return err
	}
	defer e.Release()
	for {
		if done, err := e.Done(); done || err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		runtime.Gosched()
	}
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
		s.works = s.works[:0]
		graph, err := s.stream.Capture(func() error { return s.queue(t, iters[i]) })
		if err == nil {
			err = processgroup.WaitAll(ctx, s.works...)
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
