package disttest_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/transport/faulty"
	"github.com/goccl/goccl/dist/disttest"
	processgroup "github.com/goccl/goccl/process_group"
)

// sums adds up vectors for some rounds and checks each sum.
func sums(t *testing.T, rounds int) disttest.Func {
	return func(ctx context.Context, g *processgroup.Group) error {
		for k := range rounds {
			s := make([]int32, 1000)
			for i := range s {
				s[i] = int32(i + k + 1000*g.Rank())
			}
			if err := processgroup.AllReduce(ctx, g, s, goccl.Sum); err != nil {
				return err
			}
			n := int32(g.Size())
			for i := range s {
				require.Equal(t, n*int32(i+k)+1000*n*(n-1)/2, s[i])
			}
		}
		return nil
	}
}

func TestRun(t *testing.T) { disttest.Run(t, 4, sums(t, 5)) }

func TestRunOnALink(t *testing.T) {
	disttest.Run(t, 3, sums(t, 3), disttest.OnLink(faulty.Link{BitsPerSecond: 1e9, Latency: 100 * time.Microsecond}))
}

func TestDelayedRank(t *testing.T) {
	disttest.Run(t, 3, sums(t, 3), disttest.DelayAt(1, 2, 5*time.Millisecond))
}

func line(err error) string {
	s, _, _ := strings.Cut(err.Error(), "\n")
	return s
}

func TestFailAt(t *testing.T) {
	why := errors.New("the device fell off the bus")
	errs := disttest.Errors(t, 3, sums(t, 5), disttest.FailAt(2, 3, why))
	require.ErrorIs(t, errs[2], why)
	for _, err := range errs {
		require.ErrorContains(t, err, why.Error())
	}
}

func TestPanicAt(t *testing.T) {
	errs := disttest.Errors(t, 3, sums(t, 5), disttest.PanicAt(1, 2))
	for _, err := range errs {
		require.ErrorContains(t, err, "panic: planned for allreduce #2")
		require.Equal(t, line(errs[1]), line(err))
	}
}

func TestCutWire(t *testing.T) {
	errs := disttest.Errors(t, 2, sums(t, 50), disttest.OnWire(0, 1, faulty.Fault{Kind: faulty.Cut, Step: 3}))
	for _, err := range errs {
		require.Error(t, err)
		require.Equal(t, line(errs[0]), line(err))
	}
}

// fake is a testing.TB that notes what Run says.
type fake struct {
	testing.TB
	said []string
}

func (f *fake) Errorf(format string, args ...any) { f.said = append(f.said, format) }

func TestRunReportsAnErrorOnce(t *testing.T) {
	f := &fake{TB: t}
	disttest.Run(f, 3, func(ctx context.Context, g *processgroup.Group) error {
		if g.Rank() == 1 {
			return errors.New("no")
		}
		<-ctx.Done()
		return context.Cause(ctx)
	})
	require.Len(t, f.said, 1)
}

// quiet is a require.TestingT whose FailNow ends the goroutine alone.
type quiet struct{ *fake }

func (quiet) FailNow() { runtime.Goexit() }

// require in a rank ends all of them.
func TestFailNowEndsAllRanks(t *testing.T) {
	f := &fake{TB: t}
	errs := disttest.Errors(f, 2, func(ctx context.Context, g *processgroup.Group) error {
		if g.Rank() == 0 {
			require.True(quiet{f}, false)
		}
		return g.Barrier(ctx)
	})
	require.ErrorContains(t, errs[1], "rank 0")
	require.ErrorContains(t, errs[1], "FailNow")
}
