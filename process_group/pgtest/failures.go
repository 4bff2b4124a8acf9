package pgtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	processgroup "github.com/goccl/goccl/process_group"
)

// mismatches has ranks disagree in every way that two calls can, and wants an
// error that says what each of the two sides did.
func mismatches(t *testing.T, s *suite) {
	buf := func(g *processgroup.Group, n int) device.Buffer { return put(s, g, make([]float32, n)) }
	cases := []struct {
		name string
		call func(g *processgroup.Group, odd bool) []processgroup.Work // odd: this rank differs
		both []string                                                  // what the sentence says of the two sides
	}{
		{"op", func(g *processgroup.Group, odd bool) []processgroup.Work {
			if odd {
				return []processgroup.Work{g.Broadcast(buf(g, 4), 0)}
			}
			return []processgroup.Work{g.AllReduce(buf(g, 4), goccl.Sum)}
		}, []string{"allreduce", "broadcast"}},
		{"redop", func(g *processgroup.Group, odd bool) []processgroup.Work {
			if odd {
				return []processgroup.Work{g.AllReduce(buf(g, 4), goccl.Max)}
			}
			return []processgroup.Work{g.AllReduce(buf(g, 4), goccl.Sum)}
		}, []string{"sum", "max"}},
		{"dtype", func(g *processgroup.Group, odd bool) []processgroup.Work {
			if odd {
				return []processgroup.Work{g.AllReduce(put(s, g, make([]float64, 4)), goccl.Sum)}
			}
			return []processgroup.Work{g.AllReduce(buf(g, 4), goccl.Sum)}
		}, []string{"f32", "f64"}},
		{"count", func(g *processgroup.Group, odd bool) []processgroup.Work {
			if odd {
				return []processgroup.Work{g.AllReduce(buf(g, 57), goccl.Sum)}
			}
			return []processgroup.Work{g.AllReduce(buf(g, 43), goccl.Sum)}
		}, []string{"43", "57"}},
		{"large count", func(g *processgroup.Group, odd bool) []processgroup.Work {
			if odd {
				return []processgroup.Work{g.AllReduce(buf(g, 100_001), goccl.Sum)}
			}
			return []processgroup.Work{g.AllReduce(buf(g, 100_000), goccl.Sum)}
		}, []string{"100000", "100001"}},
		{"root", func(g *processgroup.Group, odd bool) []processgroup.Work {
			// Both roots are done once they have sent: it is the next operation in
			// which the ranks meet that must find out.
			root := 0
			if odd {
				root = 1
			}
			return []processgroup.Work{g.Broadcast(buf(g, 4), root), g.AllReduce(buf(g, 4), goccl.Sum)}
		}, []string{"root 0", "root 1"}},
		{"order", func(g *processgroup.Group, odd bool) []processgroup.Work {
			if odd {
				return []processgroup.Work{g.Broadcast(buf(g, 4), 0), g.AllReduce(buf(g, 4), goccl.Sum)}
			}
			return []processgroup.Work{g.AllReduce(buf(g, 4), goccl.Sum), g.Broadcast(buf(g, 4), 0)}
		}, []string{"allreduce", "broadcast", "#1"}},
	}
	lacks := map[string]bool{"redop": !s.has(goccl.F32, goccl.Max), "dtype": !s.has(goccl.F64, goccl.Sum)}
	for _, n := range s.sizes(2, 4) {
		for _, c := range cases {
			if lacks[c.name] {
				continue
			}
			t.Run(fmt.Sprintf("%s/ranks%d", c.name, n), func(t *testing.T) {
				gs := s.groups(t, n)
				odd := n - 1
				errs := run(t, gs, func(ctx context.Context, g *processgroup.Group) error {
					return s.told(ctx, g, processgroup.WaitAll(ctx, c.call(g, g.Rank() == odd)...))
				})
				sameSentence(t, errs, goccl.ErrMismatch, append(c.both, fmt.Sprint("rank ", odd))...)
			})
		}
	}
}

// told waits until a late backend has told what is wrong with operations that
// ended well.
func (s *suite) told(ctx context.Context, g *processgroup.Group, err error) error {
	for s.Late && err == nil && ctx.Err() == nil {
		err = g.Barrier(ctx)
	}
	return err
}

func tagMismatch(t *testing.T, s *suite) {
	if s.Untagged {
		t.Skip("the backend does not compare tags")
	}
	errs := run(t, s.groups(t, 2), func(ctx context.Context, g *processgroup.Group) error {
		b := put(s, g, make([]float32, 4))
		if g.Rank() == 0 {
			// Sending may end before the other side looks at the message.
			return errors.Join(g.Send(b, 1, processgroup.Tag(11)).Wait(ctx), g.Barrier(ctx))
		}
		return errors.Join(g.Recv(b, 0, processgroup.Tag(12)).Wait(ctx), g.Barrier(ctx))
	})
	sameSentence(t, errs, goccl.ErrMismatch, "11", "12")
}

func wrongRoot(t *testing.T, s *suite) {
	const n = 2
	calls := map[string]func(g *processgroup.Group, b device.Buffer) processgroup.Work{
		"broadcast": func(g *processgroup.Group, b device.Buffer) processgroup.Work { return g.Broadcast(b, n) },
		"reduce":    func(g *processgroup.Group, b device.Buffer) processgroup.Work { return g.Reduce(b, goccl.Sum, -1) },
		"send":      func(g *processgroup.Group, b device.Buffer) processgroup.Work { return g.Send(b, n+5) },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			gs := s.groups(t, n)
			errs := run(t, gs, func(ctx context.Context, g *processgroup.Group) error {
				if g.Rank() == 0 {
					return g.Barrier(ctx)
				}
				return call(g, put(s, g, make([]float32, 2))).Wait(ctx)
			})
			sameSentence(t, errs, nil, "rank 1", name, "is not in group")
			if !errors.Is(errs[1], goccl.ErrInvalid) {
				t.Errorf("%v is no ErrInvalid", errs[1])
			}
		})
	}
	if _, err := s.groups(t, 1)[0].GlobalRank(1); !errors.Is(err, goccl.ErrInvalid) {
		t.Errorf("rank 1 of a group of one: %v", err)
	}
}

// refusal has rank 0 make a call that cannot work while the others wait for it.
func refusal(t *testing.T, s *suite) {
	gs := s.groups(t, s.upTo(3))
	errs := run(t, gs, func(ctx context.Context, g *processgroup.Group) error {
		b := make([]float32, 6)
		if err := allReduce(ctx, s, g, b, goccl.Sum); err != nil {
			return err
		}
		src := put(s, g, b)
		if g.Rank() == 0 {
			return g.AllReduceInto(put(s, g, make([]float32, 5)), src, goccl.Sum).Wait(ctx)
		}
		return g.AllReduce(src, goccl.Sum).Wait(ctx)
	})
	sameSentence(t, errs, nil, "rank 0", "allreduce #2", "5 elements")
	late := gs[1].AllReduce(put(s, gs[1], make([]float32, 1)), goccl.Sum)
	if err := late.Wait(context.Background()); firstLine(err) != firstLine(errs[0]) {
		t.Errorf("a call after the failure says %v", err)
	}
}

func failTellsAll(t *testing.T, s *suite) {
	n := s.upTo(3)
	why := errors.New("no more data on this machine")
	gs := s.groups(t, n)
	errs := run(t, gs, func(ctx context.Context, g *processgroup.Group) error {
		if g.Rank() == n-1 {
			g.Fail(why)
			g.Fail(errors.New("a later reason"))
			return g.Err()
		}
		err := g.AllReduce(put(s, g, make([]float32, 100_000)), goccl.Sum).Wait(ctx)
		<-g.Context().Done()
		if cause := context.Cause(g.Context()); firstLine(cause) != firstLine(err) {
			return fmt.Errorf("the context ended with %v, the operation with %w", cause, err)
		}
		return err
	})
	sameSentence(t, errs, nil, fmt.Sprint("rank ", n-1), why.Error())
	if !errors.Is(errs[n-1], why) || strings.Contains(errs[n-1].Error(), "later reason") {
		t.Errorf("rank %d says %v", n-1, errs[n-1])
	}
}

func abortInFlight(t *testing.T, s *suite) {
	n := s.upTo(3)
	for _, count := range []int{1, 200_000} {
		gs := s.groups(t, n)
		why := errors.New("asked to stop")
		started := make(chan struct{}, n)
		errs := run(t, gs, func(ctx context.Context, g *processgroup.Group) error {
			if g.Rank() == n-1 { // it never calls the operation
				for range n - 1 {
					<-started
				}
				g.Abort(why)
				g.Abort(why)
				return g.Err()
			}
			var ws []processgroup.Work
			for range 3 {
				ws = append(ws, g.AllReduce(put(s, g, make([]float32, count)), goccl.Sum))
			}
			started <- struct{}{}
			err := ws[2].Wait(ctx)
			for _, w := range ws {
				if e := w.Wait(ctx); e == nil {
					return errors.New("an operation that was aborted ended well")
				}
			}
			return err
		})
		sameSentence(t, errs, nil, fmt.Sprint("rank ", n-1), why.Error())
	}
}

func useAfterClose(t *testing.T, s *suite) {
	gs := s.groups(t, 2)
	works := make([]processgroup.Work, len(gs))
	all(t, gs, func(_ context.Context, g *processgroup.Group) error {
		works[g.Rank()] = g.AllReduce(put(s, g, make([]float32, 3)), goccl.Sum) // Close waits for it
		return g.Close()
	})
	for r, g := range gs {
		b := put(s, g, make([]float32, 3))
		if err := works[r].Wait(context.Background()); err != nil {
			t.Errorf("an operation from before Close: %v", err)
		}
		for _, w := range []processgroup.Work{g.AllReduce(b, goccl.Sum), g.Send(b, 1-r), g.Coalesce(func() error { return nil })} {
			if err := w.Wait(context.Background()); !errors.Is(err, goccl.ErrClosed) {
				t.Errorf("a call after Close: %v", err)
			}
		}
		if err := g.Close(); err != nil {
			t.Errorf("a second Close: %v", err)
		}
		if !errors.Is(context.Cause(g.Context()), goccl.ErrClosed) {
			t.Errorf("the context ended with %v", context.Cause(g.Context()))
		}
	}
}
