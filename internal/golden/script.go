package golden

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Case is one step of a script: the line that names what to do, and the lines
// below it.
type Case struct {
	Path string // of the script
	Line int    // of the command, from 1
	Cmd  string // first word of the command line
	Args []string
	// Input is what stands between the command line and "----", each line with
	// its newline.
	Input string
}

// separator stands between a case's input and its expected output. Output that
// holds a blank line is fenced: two separators before it and two after it.
const separator = "----"

// Script runs each case of the file through run, in order, and compares the
// text that run returns with what the file expects. The form of a case is
//
//	# a comment
//	command arg arg
//	more input
//	----
//	expected output
//
// Cases are separated by blank lines. Output that itself has blank lines begins
// after two "----" lines and ends at two more.
func Script(t *testing.T, path string, run func(t *testing.T, c Case) string) {
	t.Helper()
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("golden: %v", err)
	}
	got, err := replay(path, string(src), func(c Case) string { return run(t, c) })
	if err != nil {
		t.Fatalf("golden: %v", err)
	}
	if *rewrite {
		write(t, path, got)
		return
	}
	if d := diff(string(src), got); d != "" {
		t.Errorf("golden: %s differs (- file, + now); if the change is meant, run with -rewrite\n%s", path, d)
	}
}

// replay returns src with every expected output replaced by what run gives.
func replay(path, src string, run func(Case) string) (string, error) {
	lines := strings.Split(strings.TrimSuffix(src, "\n"), "\n")
	var out strings.Builder
	for i := 0; i < len(lines); {
		line := lines[i]
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			out.WriteString(line + "\n")
			i++
			continue
		}
		c := Case{Path: path, Line: i + 1}
		words := strings.Fields(line)
		c.Cmd, c.Args = words[0], words[1:]
		out.WriteString(line + "\n")
		i++
		for i < len(lines) && lines[i] != separator {
			if strings.TrimSpace(lines[i]) == "" {
				return "", fmt.Errorf("%s:%d: case %q has no %q line", path, c.Line, line, separator)
			}
			c.Input += lines[i] + "\n"
			out.WriteString(lines[i] + "\n")
			i++
		}
		if i == len(lines) {
			return "", fmt.Errorf("%s:%d: case %q has no %q line", path, c.Line, line, separator)
		}
		i = skipOutput(lines, i+1)
		out.WriteString(separator + "\n" + frame(run(c)))
	}
	return out.String(), nil
}

// skipOutput returns the line after the expected output that begins at i.
func skipOutput(lines []string, i int) int {
	if i < len(lines) && lines[i] == separator {
		for i++; i+1 < len(lines); i++ {
			if lines[i] == separator && lines[i+1] == separator {
				return i + 2
			}
		}
		return len(lines)
	}
	for i < len(lines) && strings.TrimSpace(lines[i]) != "" {
		i++
	}
	return i
}

// frame ends out with a newline, and fences it when it has blank lines.
func frame(out string) string {
	out = strings.TrimSuffix(out, "\n")
	if out == "" {
		return ""
	}
	for _, l := range strings.Split(out, "\n") {
		if strings.TrimSpace(l) == "" {
			return separator + "\n" + out + "\n" + separator + "\n" + separator + "\n"
		}
	}
	return out + "\n"
}
