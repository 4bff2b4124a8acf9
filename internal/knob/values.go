package knob

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"
)

func parseBool(v string) (bool, error) {
	switch v {
	case "0":
		return false, nil
	case "1":
		return true, nil
	}
	return false, errors.New("neither 0 nor 1")
}

func parseInt(v string, lo, hi int) (int, error) {
	n, err := strconv.Atoi(v)
	if err != nil {
		return 0, errors.New("not a whole number")
	}
	if n < lo || n > hi {
		return 0, fmt.Errorf("not from %d to %d", lo, hi)
	}
	return n, nil
}

// maxBytes bounds byte counts: larger ones are slips, and overflow on machines
// with 32-bit int.
const maxBytes = 1 << 30

// parseBytes reads a count of bytes with an optional K, M or G, powers of 1024.
func parseBytes(v string) (int, error) {
	digits, shift := v, 0
	if v != "" {
		if i := strings.IndexByte("KMG", v[len(v)-1]&^0x20); i >= 0 {
			digits, shift = v[:len(v)-1], 10*(i+1)
		}
	}
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || n > maxBytes>>shift {
		return 0, fmt.Errorf("not a count of bytes up to %d", maxBytes)
	}
	return int(n << shift), nil
}

// parseDuration reads a Go duration or plain seconds; it must be positive.
func parseDuration(v string) (time.Duration, error) {
	d, err := time.ParseDuration(v)
	if err != nil {
		d, err = time.ParseDuration(v + "s")
	}
	if err != nil || d <= 0 {
		return 0, errors.New("not a positive duration")
	}
	return d, nil
}

// parseLevel reads NCCL's names. VERSION, its quietest, is as quiet as WARN.
func parseLevel(v string) (slog.Level, error) {
	switch strings.ToUpper(v) {
	case "OFF":
		return levelOff, nil
	case "WARN", "VERSION":
		return slog.LevelWarn, nil
	case "INFO":
		return slog.LevelInfo, nil
	case "TRACE":
		return LevelTrace, nil
	}
	return slog.LevelWarn, errors.New("no such level")
}

func parsePorts(v string) (PortRange, error) {
	first, last, _ := strings.Cut(v, "-")
	a, err1 := strconv.ParseUint(first, 10, 16)
	b, err2 := strconv.ParseUint(last, 10, 16)
	if err1 != nil || err2 != nil || a == 0 || b < a {
		return PortRange{}, errors.New("not a range of ports")
	}
	return PortRange{First: uint16(a), Last: uint16(b)}, nil
}
