package knob

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/golden"
)

func TestTableIsSortedAndComplete(t *testing.T) {
	all := All()
	require.True(t, slices.IsSortedFunc(all, func(a, b Knob) int { return strings.Compare(a.Name, b.Name) }))
	seen := map[string]bool{}
	for _, k := range all {
		require.True(t, strings.HasPrefix(k.Name, prefix), k.Name)
		require.NotEmpty(t, k.Default, k.Name)
		require.NotEmpty(t, k.Values, k.Name)
		require.True(t, strings.HasSuffix(k.Doc, "."), k.Name)
		require.NotEmpty(t, k.Owner, k.Name)
		require.NotNil(t, k.set, k.Name)
		for _, n := range []string{k.Name, k.NCCLAlias} {
			require.False(t, n != "" && seen[n], "%s stands twice", n)
			seen[n] = true
		}
		found, ok := Find(k.Name)
		require.True(t, ok)
		require.Equal(t, k.Doc, found.Doc)
	}
	_, ok := Find("GOCCL_NOTHING")
	require.False(t, ok)
}

func TestTableText(t *testing.T) { golden.File(t, "testdata/table.txt", Table()) }

func TestAllIsACopy(t *testing.T) {
	All()[0].Name = "changed"
	require.NotEqual(t, "changed", All()[0].Name)
}

func TestInterfacesMatch(t *testing.T) {
	for _, c := range []struct {
		list     string
		yes, not []string
	}{
		{"eth,ib0", []string{"eth0", "eth12", "ib0"}, []string{"lo", "ib1", "xeth0"}},
		{"=eth0,lo", []string{"eth0", "lo"}, []string{"eth01", "lo0"}},
		{"^docker,lo", []string{"eth0"}, []string{"docker0", "lo"}},
		{"^=docker0", []string{"docker1", "lo"}, []string{"docker0"}},
	} {
		i, err := parseInterfaces(c.list)
		require.NoError(t, err, c.list)
		for _, n := range c.yes {
			require.True(t, i.Match(n), "%s should select %s", c.list, n)
		}
		for _, n := range c.not {
			require.False(t, i.Match(n), "%s should not select %s", c.list, n)
		}
	}
	require.True(t, Interfaces{}.Match("anything"))
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "abc", 3}, {"abc", "abc", 0}, {"algo", "aglo", 1}, {"timeout", "timout", 1}, {"proto", "prots", 1}, {"kitten", "sitting", 3},
	} {
		require.Equal(t, c.want, distance(c.a, c.b), "%s %s", c.a, c.b)
		require.Equal(t, c.want, distance(c.b, c.a), "%s %s", c.b, c.a)
	}
}
