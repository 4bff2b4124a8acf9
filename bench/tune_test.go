package main

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/autotune"
)

func TestTuneMeasuresAndWritesAProfile(t *testing.T) {
	dir := t.TempDir()
	points, profile := filepath.Join(dir, "points"), filepath.Join(dir, "profile.json")
	o, err := parseTune([]string{"-n", "2", "-classes", "inproc", "-colls", "allreduce,broadcast", "-b", "64", "-e", "64K", "-f", "1024",
		"-rounds", "1", "-batch", "10", "-prune", "1000", "-explain", "-points", points, "-o", profile})
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, o.run(context.Background(), nil, &out))
	require.Contains(t, out.String(), "loss of the choice by constants alone over 6 points (0 not measured)")
	require.Regexp(t, `allreduce\(window\) +2 +65536 +twoshot/`, out.String())
	require.Regexp(t, `oneshot/ll [0-9.]+ us, measured [0-9.]+ us`, out.String())

	p, err := autotune.Load(profile)
	require.NoError(t, err)
	require.Contains(t, out.String(), p.Hash())
	measured, err := readPoints(points)
	require.NoError(t, err)
	require.Len(t, measured, 6)
	require.True(t, measured[5].Barrier)
	require.Greater(t, len(measured[0].Times), 5)

	var again bytes.Buffer
	o, err = parseTune([]string{"-from", points})
	require.NoError(t, err)
	require.NoError(t, o.run(context.Background(), nil, &again))
	require.Contains(t, again.String(), "over 6 points")
}

func TestTuneRefusals(t *testing.T) {
	for _, args := range [][]string{{"-n", "1"}, {"-n", "two"}, {"-classes", "pigeon"}, {"-colls", "x"}, {"-rank-class", "x"}, {"-b", "4"}, {"-e", "?"},
		{"-f", "1"}, {"-rounds", "0"}, {"-batch", "0"}, {"-prune", "0.5"}, {"stray"}} {
		_, err := parseTune(args)
		require.Error(t, err, "%v", args)
	}
}
