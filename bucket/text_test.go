package bucket

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
)

func TestFirstDifference(t *testing.T) {
	for _, c := range []struct {
		a, b   string
		line   int
		la, lb string
	}{
		{"x\ny\n", "x\ny\n", -1, "", ""},
		{"x\ny\n", "x\nz\n", 1, "y", "z"},
		{"x\n", "x\ny\n", 1, "nothing", "y"},
		{"", "x\n", 0, "nothing", "x"},
		{"a\x00\n", "b\n", 0, "a?", "b"},
		{strings.Repeat("a", 300), "b", 0, strings.Repeat("a", 200) + "...", "b"},
	} {
		line, la, lb := firstDifference(c.a, c.b)
		require.Equal(t, []any{c.line, c.la, c.lb}, []any{line, la, lb}, "%q %q", c.a, c.b)
	}
}

// What another rank sends as its description may be anything, and only ends in a
// message: of one line, bounded, printable.
func FuzzDisagreement(f *testing.F) {
	f.Add("config\n\"a\" f32 x 3\n", "config\n\"a\" f32 x 4\n")
	f.Add("", "\xff\x00\n\x1b[31m")
	f.Add("x"+strings.Repeat("é", 150), "x"+strings.Repeat("é", 151))
	f.Fuzz(func(t *testing.T, a, b string) {
		texts := []string{a, b}
		err := disagreement("parameters", 2, func(rank int) string { return texts[rank] })
		require.ErrorIs(t, err, goccl.ErrMismatch)
		text := err.Error()
		require.True(t, utf8.ValidString(text), "%q", text)
		require.NotContains(t, text, "\n")
		require.NotContains(t, text, "\x1b")
		require.Less(t, len(text), 2*maxQuoted+200)
	})
}

// A state is read from a checkpoint: whatever it holds, it is an assignment of
// this model or an error.
func FuzzState(f *testing.F) {
	f.Add([]byte(`{"Buckets":[["c","b"],["a"]],"Limits":[1,2]}`))
	f.Add([]byte(`{"Buckets":[["c","c"]],"Limits":[1,2]}`))
	f.Add([]byte(`{"Buckets":[[]],"Limits":[0]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s State
		if json.Unmarshal(data, &s) != nil {
			return
		}
		r := &Reducer{names: []string{"a", "b", "c", "mean"}, items: []item{
			{key: key{dtype: goccl.F32}}, {key: key{dtype: goccl.F32}}, {key: key{dtype: goccl.F16}}, {frozen: true}}}
		r.e = newEngine(r, newMachine(r.names, nil, mode{}), nil)
		buckets, err := r.fromState(s)
		if err != nil {
			require.ErrorIs(t, err, goccl.ErrInvalid)
			return
		}
		require.ElementsMatch(t, []int{0, 1, 2}, flatten(buckets))
		for _, members := range buckets {
			for _, i := range members {
				require.Equal(t, r.items[members[0]].key, r.items[i].key)
			}
		}
	})
}

// The order that rank 0 sends is checked before it is used.
func TestForeignOrderIsRefused(t *testing.T) {
	r := &Reducer{params: make([]param, 3), items: []item{{}, {}, {frozen: true}}}
	wire := func(vs ...uint64) (b []byte) {
		for _, v := range vs {
			b = binary.LittleEndian.AppendUint64(b, v)
		}
		return b
	}
	order, err := r.checkOrder(wire(1, 0))
	require.NoError(t, err)
	require.Equal(t, []int{1, 0}, order)
	for _, bad := range [][]byte{wire(0, 0), wire(0, 2), wire(math.MaxUint64, 0), wire(0, 3), wire(1<<62, 0)} {
		_, err := r.checkOrder(bad)
		require.ErrorIs(t, err, goccl.ErrMismatch, "%v", bad)
	}
}
