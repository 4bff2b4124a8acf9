package nccl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/bootstrap"
	"github.com/goccl/goccl/device"
	processgroup "github.com/goccl/goccl/process_group"
)

// meeting has n ranks of this process meet and say hello.
func meeting(t *testing.T, n int, say func(rank int) hello) ([]*control, []error) {
	t.Helper()
	root, err := bootstrap.ListenLocal(bootstrap.RootOptions{Size: n})
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() { _ = root.Serve(context.Background()) })
	cs, errs := make([]*control, n), make([]error, n)
	var ranks sync.WaitGroup
	for r := range n {
		cs[r] = newControl(member{group: "g", rank: r, size: n}, new(callLog))
		ranks.Go(func() {
			cfg := Config{Rank: r, Size: n, Timeout: time.Minute}
			errs[r] = cs[r].meet(t.Context(), root.ID(), cfg, say(r))
		})
	}
	ranks.Wait()
	t.Cleanup(func() {
		for _, c := range cs {
			ranks.Go(func() { _ = c.close() })
		}
		ranks.Wait()
		_ = root.Close()
		wg.Wait()
	})
	return cs, errs
}

func good(r int) hello { return hello{Version: 22809, GPU: fmt.Sprint("GPU-", r), Device: "cuda:0"} }

func meet(t *testing.T, n int) []*control {
	t.Helper()
	cs, errs := meeting(t, n, good)
	require.Equal(t, make([]error, n), errs)
	return cs
}

func TestMeetingsThatDisagree(t *testing.T) {
	for text, say := range map[string]func(r int) hello{
		"ranks 0 and 2 are on one GPU (cuda:0, GPU-0): give each rank its own": func(r int) hello { return good(r % 2) },
		"rank 0 has NCCL 2.28.9 and rank 2 has 2.27.7: install one version everywhere": func(r int) hello {
			h := good(r)
			if r == 2 {
				h.Version = 22707
			}
			return h
		},
		`ranks disagree on NCCL's settings: rank 0 has "", rank 1 has "maxCTAs=4"`: func(r int) hello {
			h := good(r)
			if r == 1 {
				h.Settings = "maxCTAs=4"
			}
			return h
		},
	} {
		_, errs := meeting(t, 3, say)
		for _, err := range errs {
			require.ErrorIs(t, err, goccl.ErrMismatch)
			require.ErrorContains(t, err, text)
		}
	}
	_, errs := meeting(t, 2, func(r int) hello { h := good(r); h.Version += r; return h })
	require.Equal(t, make([]error, 2), errs, "a patch release differs")
}

func TestFirstCauseIsEverybodys(t *testing.T) {
	cs := meet(t, 3)
	heard := make(chan error, 3)
	for _, c := range cs {
		c.OnFailure(func(err error) { heard <- err })
	}
	why := errors.New("no more data")
	cause := cs[1].Decide(why)
	require.ErrorIs(t, cause, why)
	require.ErrorContains(t, cause, "goccl: rank 1 (host ")
	for range cs {
		err := <-heard
		require.Equal(t, cause.Error(), err.Error())
	}
	require.Equal(t, cause.Error(), cs[0].Decide(errors.New("a later one")).Error())
}

func TestControlOfOne(t *testing.T) {
	c := newControl(member{group: "g", size: 1}, new(callLog))
	require.NoError(t, c.meet(t.Context(), bootstrap.UniqueID{}, Config{Size: 1}, hello{}))
	all, err := c.exchange(t.Context(), []byte("x"))
	require.NoError(t, err)
	require.Equal(t, [][]byte{[]byte("x")}, all)
	require.Empty(t, c.Laggards(t.Context(), 4))
	missing, err := c.MonitoredBarrier(t.Context())
	require.NoError(t, err)
	require.Empty(t, missing)
	why := errors.New("enough")
	require.ErrorIs(t, c.Decide(why), why)
	require.NoError(t, c.close())
	require.NoError(t, c.close())
}

func allReduceOf(count int, seq uint64) *processgroup.Op {
	b := f32(0x100, count)
	return &processgroup.Op{Coll: goccl.AllReduce, Root: -1, Src: b, Dst: b, Seq: seq}
}

func TestLaggards(t *testing.T) {
	cs := meet(t, 3)
	for seq := uint64(1); seq <= 4; seq++ {
		cs[0].log.add(allReduceOf(7, seq))
		if seq < 3 {
			cs[2].log.add(allReduceOf(7, seq))
		}
	}
	lags := cs[0].Laggards(t.Context(), 3)
	require.Len(t, lags, 2)
	require.Equal(t, []any{1, uint64(0), "running", ""}, []any{lags[0].Rank, lags[0].Seq, lags[0].State, lags[0].What})
	require.Equal(t, []any{2, uint64(2), "running", "allreduce of 7 f32 sum"}, []any{lags[1].Rank, lags[1].Seq, lags[1].State, lags[1].What})
	require.NotZero(t, lags[1].PID)
	require.Len(t, cs[0].Laggards(t.Context(), 1), 1)
}

// Ranks that call different things are told so, though nothing waits.
func TestAuditFindsADisagreement(t *testing.T) {
	cs := meet(t, 3)
	cs[0].spawn(cs[0].audit)
	for seq := uint64(1); seq <= 9000; seq++ { // far more than are told at once
		for r, c := range cs {
			n := 43
			if r == 1 && seq == 60 {
				n = 57
			}
			c.log.add(allReduceOf(n, seq))
		}
	}
	for _, c := range cs {
		<-c.failed
		require.ErrorIs(t, c.err(), goccl.ErrMismatch)
		require.ErrorContains(t, c.err(), `goccl: ranks disagree on operation #60 of group "g": rank 1 (host `)
		require.ErrorContains(t, c.err(), "called allreduce of 57 f32 sum")
		require.ErrorContains(t, c.err(), "ranks 0, 2 (host ")
		require.ErrorContains(t, c.err(), "called allreduce of 43 f32 sum")
	}
}

func TestLocateFindsEveryPosition(t *testing.T) {
	for _, at := range []uint64{1, 2, 63, 64, 65, 128, 777, 998, 999, 1000} {
		cs := meet(t, 2)
		for r, c := range cs {
			for seq := uint64(1); seq <= 1000; seq++ {
				n := 43
				if r == 1 && seq == at {
					n = 57
				}
				c.log.add(allReduceOf(n, seq))
			}
		}
		reports, seq := cs[0].locate(1000)
		require.Equal(t, at, seq)
		require.ErrorContains(t, cs[0].disagreement(reports, seq), "called allreduce of 57 f32 sum")
		require.ErrorContains(t, cs[0].disagreement(reports, seq), "called allreduce of 43 f32 sum")
	}
}

func TestAuditOfEqualCalls(t *testing.T) {
	reports := map[int]report{}
	for r := range 3 {
		l := new(callLog)
		for seq := uint64(1); seq <= uint64(300+2*r); seq++ { // ahead by less than what is told
			l.add(allReduceOf(int(seq), seq))
		}
		got, ok := readReport(l.report(stageReady).encode())
		require.True(t, ok)
		require.Len(t, got.Calls, told)
		reports[r] = got
	}
	_, found := firstDifference(reports)
	require.False(t, found)
	require.False(t, level(reports))

}

// A difference that nobody remembers still shows in what came after.
func TestAuditOfAForgottenDifference(t *testing.T) {
	cs := meet(t, 2)
	for r, c := range cs {
		c.log.add(allReduceOf(1+r, 1))
		for seq := uint64(2); seq < logged+100; seq++ {
			c.log.add(allReduceOf(9, seq))
		}
	}
	cs[0].spawn(cs[0].audit)
	<-cs[1].failed
	require.ErrorIs(t, cs[1].err(), goccl.ErrMismatch)
	require.ErrorContains(t, cs[1].err(), "differed in an earlier one")
}

func TestWhatRanksMustAgreeOn(t *testing.T) {
	b, c := f32(0x100, 6), f32(0x200, 2)
	for text, op := range map[string]*processgroup.Op{
		"allreduce of 6 f32 max":       {Coll: goccl.AllReduce, Redop: goccl.Max, Root: -1, Src: b, Dst: b},
		"allreduce of 6 f32 premulsum": {Coll: goccl.AllReduce, Redop: goccl.PreMulSum(3), Root: -1, Src: b, Dst: b},
		"reducescatter of 2 f32 sum":   {Coll: goccl.ReduceScatter, Root: -1, Src: b, Dst: c},
		"reduce of 6 f32 sum root 1":   {Coll: goccl.Reduce, Root: 1, Src: b},
		"broadcast of 6 f32 root 2":    {Coll: goccl.Broadcast, Root: 2, Src: b, Dst: b},
		"scatter of 2 f32 root 0":      {Coll: goccl.Scatter, Root: 0, Dst: c, SrcList: []device.Buffer{c, c, c}},
		"gather of 2 f32 root 0":       {Coll: goccl.Gather, Root: 0, Src: c},
		"alltoall":                     {Coll: goccl.AllToAll, Root: -1, Src: b, Dst: b, SendCounts: []int{1, 2, 3}},
		"alltoall of 6 f32":            {Coll: goccl.AllToAll, Root: -1, Src: b, Dst: b},
		"barrier":                      {Coll: goccl.Barrier, Root: -1},
	} {
		require.Equal(t, text, briefOf(op).String())
	}
	half := &processgroup.Op{Coll: goccl.AllReduce, Redop: goccl.PreMulSum(0.5), Root: -1, Src: b, Dst: b}
	twice := &processgroup.Op{Coll: goccl.AllReduce, Redop: goccl.PreMulSum(2), Root: -1, Src: b, Dst: b}
	require.Equal(t, briefOf(half).signature(5), briefOf(twice).signature(5), "each rank has its scale")
	uneven := func(n int) brief {
		return briefOf(&processgroup.Op{Coll: goccl.AllToAll, Root: -1, Src: f32(0x100, n), Dst: b, SendCounts: []int{n}})
	}
	require.Equal(t, uneven(1).signature(5), uneven(2).signature(5))
	require.NotEqual(t, uneven(1).signature(5), uneven(1).signature(6))
	l := new(callLog)
	l.add(&processgroup.Op{Coll: goccl.SendRecv, Root: 1, Src: b, Send: true, Seq: 1})
	require.Zero(t, l.last(), "sends concern two ranks")
	require.False(t, strings.Contains(briefOf(half).String(), "0.5"))
}
