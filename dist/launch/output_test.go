package launch

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLines(t *testing.T) {
	long := strings.Repeat("x", maxLine)
	for _, c := range []struct {
		name   string
		writes []string
		want   []string // one entry for each write that arrives
	}{
		{"whole lines", []string{"a\nb\n"}, []string{"[3] a\n", "[3] b\n"}},
		{"pieces", []string{"a", "b\nc", "\n"}, []string{"[3] ab\n", "[3] c\n"}},
		{"no final newline", []string{"a\n", "b"}, []string{"[3] a\n", "[3] b\n"}},
		{"empty lines", []string{"\n\n"}, []string{"[3] \n", "[3] \n"}},
		{"nothing", []string{""}, nil},
		{"carriage returns stay", []string{"10%\r20%\r\n"}, []string{"[3] 10%\r20%\r\n"}},
		{"as long as allowed", []string{long[1:] + "\nb\n"}, []string{"[3] " + long[1:] + "\n", "[3] b\n"}},
		{"too long", []string{long + "yz\n"}, []string{"[3] " + long + "\n", "[3] yz\n"}},
		{"too long in pieces", []string{long[5:], "abcdefg", "h\n"}, []string{"[3] " + long[5:] + "abcde\n", "[3] fgh\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got writes
			l := newLines(&got, new(sync.Mutex), 3, true, new(tail))
			for _, w := range c.writes {
				n, err := l.Write([]byte(w))
				require.NoError(t, err)
				require.Equal(t, len(w), n)
			}
			l.end()
			l.end()
			require.Equal(t, len(c.want), len(got))
			for i := range got {
				require.True(t, c.want[i] == got[i], "write %d of %d bytes", i, len(got[i]))
			}
		})
	}
}

type writes []string

func (w *writes) Write(p []byte) (int, error) {
	*w = append(*w, string(p))
	return len(p), nil
}

func TestLinesWithoutPrefix(t *testing.T) {
	var got bytes.Buffer
	l := newLines(&got, new(sync.Mutex), 3, false, new(tail))
	_, err := l.Write([]byte("a\nb"))
	require.NoError(t, err)
	l.end()
	require.Equal(t, "a\nb\n", got.String())
}

type closedWriter struct{}

func (closedWriter) Write([]byte) (int, error) { return 0, errors.New("closed") }

func TestLinesIgnoreAClosedOutput(t *testing.T) {
	var kept tail
	l := newLines(closedWriter{}, new(sync.Mutex), 0, true, &kept)
	n, err := l.Write([]byte("a\nb\n"))
	require.NoError(t, err)
	require.Equal(t, 4, n)
	require.Equal(t, "a\nb\n", kept.String())
}

func TestTail(t *testing.T) {
	var kept tail
	var all strings.Builder
	for i := range 5000 {
		line := strings.Repeat(string(rune('a'+i%26)), i%90) + "\n"
		kept.add([]byte(line))
		all.WriteString(line)
	}
	got := kept.String()
	require.LessOrEqual(t, len(got), maxTail)
	require.Greater(t, len(got), maxTail-100)
	require.True(t, strings.HasSuffix(all.String(), "\n"+got), "whole lines, the last ones")

	kept.add(bytes.Repeat([]byte("z"), 3*maxTail))
	require.Equal(t, strings.Repeat("z", maxTail), kept.String())
}
