package shm

import (
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/goccl/goccl"
)

// startTime returns when the process started, in the kernel's ticks since boot.
// With the pid it names a process for good. A process that has ended and only
// waits for its parent counts as gone.
func startTime(pid int) (uint64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	state, start, err := parseStat(string(b))
	if err != nil {
		return 0, err
	}
	if state == "Z" || state == "X" {
		return 0, os.ErrNotExist
	}
	return start, nil
}

// parseStat reads the third and the twenty-second field. The second is a name in
// parentheses that may hold anything.
func parseStat(text string) (state string, start uint64, err error) {
	end := strings.LastIndexByte(text, ')')
	fields := strings.Fields(text[end+1:])
	if end < 0 || len(fields) < 20 {
		return "", 0, fmt.Errorf("stat of a process in an unknown form: %q", text)
	}
	start, err = strconv.ParseUint(fields[19], 10, 64)
	return fields[0], start, err
}

func encodeStart(start uint64) []byte { return binary.LittleEndian.AppendUint64(nil, start) }

func decodeStart(b []byte) (uint64, error) {
	if len(b) != 8 {
		return 0, fmt.Errorf("%w: it announced %d bytes to the shm transport, want a start time of 8", goccl.ErrMismatch, len(b))
	}
	return binary.LittleEndian.Uint64(b), nil
}

// lost is the end of a peer's process as an error.
func lost(pid int) error { return fmt.Errorf("%w: process %d has ended", goccl.ErrPeerLost, pid) }
