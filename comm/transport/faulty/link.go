package faulty

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Link is the speed of the way from one rank to another. The zero value is as
// fast as what lies beneath.
type Link struct {
	BitsPerSecond float64       // 0: without a limit
	Latency       time.Duration // from the last bit sent to its arrival
}

// String returns the form that ParseLink reads.
func (l Link) String() string {
	var parts []string
	if l.BitsPerSecond > 0 {
		parts = append(parts, rate(l.BitsPerSecond))
	}
	if l.Latency > 0 {
		parts = append(parts, l.Latency.String())
	}
	return strings.Join(parts, ",")
}

var units = []struct {
	name string
	bits float64
}{{"Gbps", 1e9}, {"Mbps", 1e6}, {"kbps", 1e3}, {"bps", 1}}

func rate(bits float64) string {
	for _, u := range units {
		if bits >= u.bits {
			return strconv.FormatFloat(bits/u.bits, 'g', -1, 64) + u.name
		}
	}
	return strconv.FormatFloat(bits, 'g', -1, 64) + "bps"
}

// ParseLink reads "1Gbps,50us": a rate in Gbps, Mbps, kbps or bps, a latency as
// time.ParseDuration reads it, or both.
func ParseLink(s string) (Link, error) {
	var l Link
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimSpace(part)
		if bits, ok := parseRate(part); ok && l.BitsPerSecond == 0 {
			l.BitsPerSecond = bits
			continue
		}
		if d, err := time.ParseDuration(part); err == nil && d > 0 && l.Latency == 0 {
			l.Latency = d
			continue
		}
		return Link{}, fmt.Errorf("link %q: %w", s, errLink)
	}
	return l, nil
}

var errLink = errors.New(`want a rate and a latency, for example "1Gbps,50us", "200Mbps" or "1ms"`)

func parseRate(s string) (float64, bool) {
	for _, u := range units {
		if number, ok := strings.CutSuffix(s, u.name); ok {
			v, err := strconv.ParseFloat(number, 64)
			bits := v * u.bits
			return bits, err == nil && bits > 0 && bits <= 1e15
		}
	}
	return 0, false
}

// wire is the link of one pair of ranks; all their connections queue on it.
type wire struct {
	link Link
	mu   sync.Mutex
	free time.Time // when the last bit queued so far has been sent
}

// carry queues bytes that are ready at now and returns when they arrive.
func (w *wire) carry(now time.Time, bytes int) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.free.Before(now) {
		w.free = now
	}
	if w.link.BitsPerSecond > 0 {
		w.free = w.free.Add(time.Duration(float64(bytes) * 8 / w.link.BitsPerSecond * float64(time.Second)))
	}
	return w.free.Add(w.link.Latency)
}
