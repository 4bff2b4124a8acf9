// Package golden compares text with files under testdata. Run the test with
// -rewrite to write the files anew, then read the diff before committing it.
//
// There are two forms. File compares one text with one file. Script runs a file
// of cases, each a few lines of input and the output they must give, so that a
// scenario and its result are read side by side.
package golden

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write golden files anew instead of comparing with them")

// Rewriting reports whether the test binary was started with -rewrite.
func Rewriting() bool { return *rewrite }

// File fails t when got differs from the content of path; with -rewrite it
// writes got there instead. A last newline is added where it is missing.
func File(t testing.TB, path, got string) {
	t.Helper()
	if !strings.HasSuffix(got, "\n") {
		got += "\n"
	}
	if *rewrite {
		write(t, path, got)
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("golden: %v; run this test with -rewrite to make the file", err)
	}
	if d := diff(string(want), got); d != "" {
		t.Errorf("golden: %s differs (- file, + now); if the change is meant, run with -rewrite\n%s", path, d)
	}
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatalf("golden: %v", err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatalf("golden: %v", err)
	}
}

// diff names the first line that differs with a little around it; empty when
// the texts are equal. Goldens are short, so the first difference is enough.
func diff(want, got string) string {
	if want == got {
		return ""
	}
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	i := 0
	for i < len(w) && i < len(g) && w[i] == g[i] {
		i++
	}
	const context = 3
	var b strings.Builder
	for j := max(0, i-context); j < i; j++ {
		fmt.Fprintf(&b, "%5d   %s\n", j+1, w[j])
	}
	for j := i; j < min(len(w), i+context); j++ {
		fmt.Fprintf(&b, "%5d - %s\n", j+1, w[j])
	}
	for j := i; j < min(len(g), i+context); j++ {
		fmt.Fprintf(&b, "%5d + %s\n", j+1, g[j])
	}
	return b.String()
}
