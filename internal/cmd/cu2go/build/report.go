package build

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Function is what the assembler reported of one kernel, or of one device function
// that was not inlined.
type Function struct {
	Name                  string
	Entry                 bool
	Registers, Shared     int
	Stack, Stored, Loaded int // bytes a thread of stack, and of spilled registers
	seen                  int // lines of the report
}

var (
	entryLine = regexp.MustCompile(`^ptxas info\s*: Compiling entry function '([^']+)' for '[^']+'$`)
	nameLine  = regexp.MustCompile(`^ptxas info\s*: Function properties for (\S+)$`)
	spillLine = regexp.MustCompile(`^ptxas\s+\.?\s+(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads$`)
	usedLine  = regexp.MustCompile(`^ptxas info\s*: Used (\d+) registers(.*)$`)
	smem      = regexp.MustCompile(`(\d+) bytes smem`)
	gmemLine  = regexp.MustCompile(`^ptxas info\s*: (\d+) bytes gmem`)
	ptxasTime = regexp.MustCompile(`^ptxas info\s*: Compile time = `)
)

// deprecated is what the compiler says of sm_70 each time. It compiles it all the
// same.
const deprecated = "nvrtc: warning: Architectures prior to '<compute/sm>_75' are deprecated"

// ParseReport reads the log of a compilation to a cubin. A line that it does not know is
// an error: it is a warning about the source, or a compiler whose words changed,
// and then nothing could be said about spills.
func ParseReport(log string) ([]Function, error) {
	var all []Function
	at := -1 // function that the next lines are about
	find := func(name string) int {
		for i := range all {
			if all[i].Name == name {
				return i
			}
		}
		all = append(all, Function{Name: name})
		return len(all) - 1
	}
	entry := -1
	var unknown []string
	for _, line := range strings.Split(log, "\n") {
		line = strings.TrimRight(line, " \r")
		switch {
		case line == "" || strings.HasPrefix(line, deprecated) || ptxasTime.MatchString(line):
		case gmemLine.MatchString(line):
			if m := gmemLine.FindStringSubmatch(line); m[1] != "0" {
				return nil, fmt.Errorf("the module has %s bytes of global variables; a kernel is handed its memory", m[1])
			}
		case entryLine.MatchString(line):
			at = find(entryLine.FindStringSubmatch(line)[1])
			all[at].Entry, entry = true, at
		case nameLine.MatchString(line):
			at = find(nameLine.FindStringSubmatch(line)[1])
		case spillLine.MatchString(line) && at >= 0:
			n := numbers(spillLine.FindStringSubmatch(line)[1:])
			all[at].Stack, all[at].Stored, all[at].Loaded = n[0], n[1], n[2]
			all[at].seen++
		case usedLine.MatchString(line) && entry >= 0:
			m := usedLine.FindStringSubmatch(line)
			all[entry].Registers = numbers(m[1:2])[0]
			if s := smem.FindStringSubmatch(m[2]); s != nil {
				all[entry].Shared = numbers(s[1:])[0]
			}
			all[entry].seen++
		default:
			unknown = append(unknown, line)
		}
	}
	if unknown != nil {
		return nil, fmt.Errorf("the compiler says:\n%s", shorten(strings.Join(unknown, "\n")))
	}
	for _, f := range all {
		if f.Entry && f.seen != 2 || f.seen == 0 {
			return nil, fmt.Errorf("the compiler's report lacks registers or spills of %s:\n%s", f.Name, log)
		}
	}
	return all, nil
}

// numbers converts what a pattern of digits matched. What does not fit is as large
// as can be.
func numbers(s []string) []int {
	var n []int
	for _, x := range s {
		v, err := strconv.Atoi(x)
		if err != nil {
			v = int(^uint(0) >> 1)
		}
		n = append(n, v)
	}
	return n
}

// Problem says why f must not be committed, or "".
func (f Function) Problem() string {
	switch {
	case f.Stored > 0 || f.Loaded > 0:
		return fmt.Sprintf("%s spills registers: %d bytes of stores and %d of loads a thread; give it smaller blocks or fewer values at a time", f.Name, f.Stored, f.Loaded)
	case f.Stack > 0:
		return fmt.Sprintf("%s has a stack frame of %d bytes a thread; an array that is indexed at run time, or a call that was not inlined, lies in slow memory", f.Name, f.Stack)
	}
	return ""
}
