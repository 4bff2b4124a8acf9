package autotune_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/autotune"
	"github.com/goccl/goccl/autotune/model"
)

// measured reads the recorded measurements: what `bench tune -prune 12 -points`
// wrote on the machine that the default profile names.
func measured(t *testing.T) []autotune.Point {
	f, err := os.Open("testdata/measured.json")
	require.NoError(t, err)
	defer f.Close()
	var out []autotune.Point
	for d := json.NewDecoder(f); ; {
		var p autotune.Point
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		out = append(out, p)
	}
	require.Greater(t, len(out), 200)
	return out
}

// judge counts the points at which the choice is within the factor of the
// fastest.
func judge(t *testing.T, tn *autotune.Tuner, points []autotune.Point, within float64) (good, missing int) {
	for i := range points {
		v, err := tn.Judge(&points[i])
		require.NoError(t, err)
		switch {
		case v.US == 0:
			missing++
		case v.Loss() <= within:
			good++
		}
	}
	return good, missing
}

func TestDefaultProfileOnRecordedMeasurements(t *testing.T) {
	points := measured(t)
	good, missing := judge(t, tuner(t), points, 1.3)
	require.Zero(t, missing, "choices that were not measured")
	require.GreaterOrEqual(t, float64(good), 0.93*float64(len(points)), "choices by the constants alone within 1.3 x of the fastest")
	sum := 0.0
	for i := range points {
		v, err := tuner(t).Judge(&points[i])
		require.NoError(t, err)
		sum += v.Loss()
	}
	require.Less(t, sum/float64(len(points)), 1.1, "mean loss")
}

// TestFitFindsTheDefaultProfile fits the recorded measurements again: the
// default profile is their fit, and the table closes the rest of the gap.
func TestFitFindsTheDefaultProfile(t *testing.T) {
	points := measured(t)
	base, err := autotune.DefaultProfile()
	require.NoError(t, err)
	p, err := autotune.Fit(points, base, base.Machine, 1.1)
	require.NoError(t, err)
	bare := *p
	bare.Best = nil
	fitted, err := autotune.New(&bare)
	require.NoError(t, err)
	for i := range points {
		r, err := points[i].Request()
		require.NoError(t, err)
		for _, c := range tuner(t).Explain(r) {
			require.InEpsilon(t, c.US, prediction(fitted, r, c.Decision), 0.2, "%+v: %v", points[i], c)
		}
	}
	tn, err := autotune.New(p)
	require.NoError(t, err)
	good, missing := judge(t, tn, points, 1.1)
	require.Zero(t, missing)
	require.Equal(t, len(points), good, "with the table every choice is within 1.1 x of the fastest")
	other := base.Machine
	other.Cores = 64
	p.Machine = other
	elsewhere, err := autotune.New(p)
	require.NoError(t, err)
	for i := range points {
		r, err := points[i].Request()
		require.NoError(t, err)
		want, err := fitted.Choose(r)
		require.NoError(t, err)
		d, err := elsewhere.Choose(r)
		require.NoError(t, err)
		require.Equal(t, want, d, "the table does not hold on a machine of other cores")
	}
}

func TestExplainMarksTheTable(t *testing.T) {
	r := request(goccl.AllReduce, model.Shm, 4, 2, 3000, false)
	p, err := autotune.DefaultProfile()
	require.NoError(t, err)
	q := *p
	q.Machine.Cores = 2
	q.Best = []autotune.Best{{Class: "shm", Coll: "allreduce", Ranks: 4, Log2: 11, Algo: "ring", Proto: "simple", Channels: 3, Chunk: 1024}}
	tn, err := autotune.New(&q)
	require.NoError(t, err)
	all := tn.Explain(r)
	require.True(t, all[0].Measured)
	require.Regexp(t, `^ring/simple 3 channels chunk 1024 [0-9.]+ us \(measured best\)$`, all[0].String())
	require.False(t, all[1].Measured)
	require.NotEqual(t, tuner(t).Hash(), tn.Hash())
	r.Hosts = 2
	require.False(t, tn.Explain(r)[0].Measured, "the table is of one host")
	r.Hosts, r.Bytes = 1, 4096
	require.False(t, tn.Explain(r)[0].Measured, "another size class")

	q.Best[0].Algo, q.Best[0].Log2 = "oneshot", 20
	tn, err = autotune.New(&q)
	require.NoError(t, err)
	r.Bytes = 1 << 20
	d, err := tn.Choose(r)
	require.NoError(t, err)
	require.NotEqual(t, goccl.OneShot, d.Algo, "a table cannot make a message fit")
}

func TestExplainedOnce(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: autotune.LevelTuning}))
	tn := tuner(t)
	told := autotune.Explained(tn, log)
	r := request(goccl.AllReduce, model.Shm, 2, 2, 4096, false)
	for range 3 {
		want, err := tn.Choose(r)
		require.NoError(t, err)
		d, err := told.Choose(r)
		require.NoError(t, err)
		require.Equal(t, want, d)
	}
	require.Equal(t, 1, bytes.Count(out.Bytes(), []byte("TUNING")))
	require.Contains(t, out.String(), "collective=allreduce bytes=4096 ranks=2 class=shm window=false chosen=\"oneshot/ll")
	require.Same(t, tn, autotune.Explained(tn, slog.New(slog.DiscardHandler)))
	require.Same(t, tn, autotune.Explained(tn, nil))
}
