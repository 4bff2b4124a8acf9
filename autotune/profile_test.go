package autotune_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/autotune"
	"github.com/goccl/goccl/comm"
)

// prediction returns the predicted time of one candidate; 0 when it is none.
func prediction(tn *autotune.Tuner, r comm.Request, d comm.Decision) float64 {
	for _, c := range tn.Explain(r) {
		if c.Decision == d {
			return c.US
		}
	}
	return 0
}

func TestProfileSavesAndLoads(t *testing.T) {
	p, err := autotune.Load("testdata/tuned.json")
	require.NoError(t, err)
	require.NotEmpty(t, p.Best)
	path := filepath.Join(t.TempDir(), "profile.json")
	require.NoError(t, p.Save(path))
	again, err := autotune.Load(path)
	require.NoError(t, err)
	require.Equal(t, p, again)
	require.Equal(t, p.Hash(), again.Hash())
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 1)

	again.Machine.CPU, again.Machine.Note = "another", "other words"
	require.Equal(t, p.Hash(), again.Hash(), "a description decides nothing")
	again.Best[0].Channels++
	require.NotEqual(t, p.Hash(), again.Hash())
	again, err = autotune.Load(path)
	require.NoError(t, err)
	k := again.Constants["shm"]
	k.Copy++
	again.Constants["shm"] = k
	require.NotEqual(t, p.Hash(), again.Hash())
}

func TestProfileRefusals(t *testing.T) {
	_, err := autotune.Load(filepath.Join(t.TempDir(), "none.json"))
	require.ErrorIs(t, err, os.ErrNotExist)
	for _, c := range []struct{ text, says string }{
		{``, "EOF"},
		{`{}`, "version 0; this release reads version 1"},
		{`{"version": 2}`, "measure again with `bench tune`"},
		{`{"version": 1} {}`, "something follows its end"},
		{`{"version": 1, "speed": 3}`, `unknown field "speed"`},
		{`{"version": 1, "constants": {"pigeon": {}}}`, `no class of connections is called "pigeon"`},
		{`{"version": 1, "constants": {"shm": {"op_us": -1, "fused_us": 1, "cache_bytes": 1}}}`, "constants of shm: want times"},
		{`{"version": 1, "constants": {"shm": {"op_us": 1, "fused_us": 1, "cache_bytes": 0}}}`, "cache_bytes positive"},
		{`{"version": 1, "best": [{"class": "x"}]}`, `best choice 0: no class of connections is called "x"`},
		{`{"version": 1, "best": [{"class": "shm", "coll": "x"}]}`, `no collective is called "x"`},
		{`{"version": 1, "best": [{"class": "shm", "coll": "reduce", "algo": "x"}]}`, `no algorithm is called "x"`},
		{`{"version": 1, "best": [{"class": "shm", "coll": "reduce", "algo": "ring", "proto": "x"}]}`, `no protocol is called "x"`},
		{`{"version": 1, "best": [{"class": "shm", "coll": "reduce", "algo": "ring", "proto": "ll", "ranks": 2, "channels": 1, "chunk": 100}]}`, "a multiple of 512"},
		{`{"version": 1, "best": [` + strings.Repeat(`{},`, 1<<16) + `{}]}`, "at most 65536"},
		{strings.Repeat(" ", 4<<20) + `{"version": 1}`, "more than 4194304 bytes"},
	} {
		_, err := autotune.Decode(strings.NewReader(c.text))
		require.ErrorContains(t, err, c.says)
	}
	bad := autotune.Profile{Version: 3}
	require.ErrorIs(t, bad.Encode(&bytes.Buffer{}), goccl.ErrUnsupported)
	_, err = autotune.New(&bad)
	require.ErrorIs(t, err, goccl.ErrUnsupported)
	path := filepath.Join(t.TempDir(), "p.json")
	require.ErrorIs(t, bad.Save(path), goccl.ErrUnsupported)
	require.NoFileExists(t, path)
}

// FuzzDecode: what decodes can be used, and is the same after another turn.
func FuzzDecode(f *testing.F) {
	// Small seeds: the fuzzer shortens what it finds, and that takes time.
	f.Add([]byte(`{"version":1,"machine":{"cpu":"x","cores":2},"constants":{"network":{"op_us":1,"fused_us":1,"yield_us":2.5,"cache_bytes":9}}}`))
	f.Add([]byte(`{"version":1,"best":[{"class":"shm","coll":"reduce","algo":"ring","proto":"ll","ranks":2,"channels":1,"log2":62}]}`))
	f.Add([]byte(`{"version":1,"constants":{"shm":{"op_us":1e6,"fused_us":1e-300,"cache_bytes":1}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := autotune.Decode(bytes.NewReader(data))
		if err != nil {
			require.Nil(t, p)
			return
		}
		tn, err := autotune.New(p)
		require.NoError(t, err)
		for _, bytes := range []int64{0, 4096, 1 << 40} {
			for _, c := range tn.Explain(request(goccl.AllReduce, 1, 2, 2, bytes, false)) {
				require.True(t, c.US > 0 && c.US < 1e300, "%v", c)
			}
		}
		var out bytes.Buffer
		require.NoError(t, p.Encode(&out))
		again, err := autotune.Decode(&out)
		require.NoError(t, err)
		require.Equal(t, p.Hash(), again.Hash())
	})
}
