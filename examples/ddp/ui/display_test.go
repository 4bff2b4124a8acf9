package ui

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vbauerster/mpb/v8"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

func at(step int) Status {
	return Status{
		Step: step, Epoch: 1 + (step-1)/5, Loss: 2.5 / float64(step), SamplesPerSecond: 12345.6,
		Ranks: []Shares{{Compute: 0.7, Communication: 0.45, Blocked: 0.125}, {Compute: 1, Communication: 0.05, Blocked: 0}},
	}
}

func TestLines(t *testing.T) {
	var out bytes.Buffer
	l := NewLines(&out, Plan{Title: "digits", Ranks: 2, Steps: 10, Epochs: 2, Every: 4})
	for step := 1; step <= 10; step++ {
		if step == 6 {
			l.Note("rank 3 was killed")
		}
		l.Update(at(step))
	}
	l.Close()
	l.Close()
	l.Update(at(10))
	l.Note("too late")
	golden(t, "lines.txt", out.Bytes())
}

func TestLinesSkippedStatuses(t *testing.T) {
	var out bytes.Buffer
	l := NewLines(&out, Plan{Title: "digits", Steps: 100, Epochs: 20})
	l.Update(at(50))
	l.Update(at(50))
	l.Update(at(51))
	require.Equal(t, 3, strings.Count(out.String(), "\n"), "one line for each new step: %q", out.String())
}

func TestNewTakesLinesWithoutTerminal(t *testing.T) {
	require.IsType(t, &Lines{}, New(&bytes.Buffer{}, Plan{}))
	f, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	require.False(t, IsTerminal(f))
	require.IsType(t, &Lines{}, New(f, Plan{}))
}

// screen is a buffer that the bar's goroutine writes to.
type screen struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

func TestBar(t *testing.T) {
	for _, last := range []int{10, 7} {
		var out screen
		refresh := make(chan any)
		b := newBar(Plan{Title: "digits", Ranks: 2, Steps: 10, Epochs: 2},
			mpb.WithOutput(&out), mpb.ForceTTY(), mpb.WithManualRefresh(refresh), mpb.WithWidth(100))
		b.Note("starting")
		for step := 1; step <= last; step++ {
			b.Update(at(step))
			if step%3 == 1 {
				refresh <- nil
			}
		}
		b.Close()
		b.Close()
		b.Note("too late")
		text := out.String()
		require.Contains(t, text, "starting\n")
		require.NotContains(t, text, "too late")
		// Each drawing but the first begins by going up over the bar and its two ranks.
		ups := regexp.MustCompile(`\x1b\[(\d+)A`).FindAllStringSubmatch(text, -1)
		require.NotEmpty(t, ups, "%q", text)
		for _, up := range ups {
			require.Equal(t, "3", up[1], "%q", text)
		}
		for _, want := range []string{"digits   epoch 2/2", "  " + summary(at(last)), rankLine(0, at(last).Ranks[0]), rankLine(1, at(last).Ranks[1])} {
			require.Contains(t, text, want)
		}
	}
}

func TestRankLine(t *testing.T) {
	require.Equal(t, "rank 3  compute  70 %  communication  45 %  blocked  12 %", rankLine(3, Shares{0.7, 0.45, 0.124}))
}
