package options

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Link is what a shaped link between two ranks carries. The zero value is no
// shaping. *Link is a flag.Value.
type Link struct {
	BitsPerSecond int64         // 0: not limited
	Latency       time.Duration // one way, added to every message
}

// rateUnits is decimal, as network rates are. Longer names come first, for "bps"
// ends them all.
var rateUnits = []struct {
	suffix string
	scale  float64
}{{"gbps", 1e9}, {"mbps", 1e6}, {"kbps", 1e3}, {"bps", 1}}

// maxLatency bounds the delay: more would look like a dead rank.
const maxLatency = 10 * time.Second

// ParseLink reads "rate" or "rate,latency": 200Mbps, 1Gbps,50us, 1.5Gbps,2ms.
// The rate is in bits a second with one of the units bps, kbps, Mbps and Gbps, in
// any case; the latency is a Go duration of at most 10 s. An empty string is no
// shaping.
func ParseLink(s string) (Link, error) {
	if s == "" {
		return Link{}, nil
	}
	rate, delay, hasDelay := strings.Cut(s, ",")
	var l Link
	var err error
	if l.BitsPerSecond, err = parseRate(strings.TrimSpace(rate)); err != nil {
		return Link{}, fmt.Errorf("link %q: %w", s, err)
	}
	if !hasDelay {
		return l, nil
	}
	if l.Latency, err = time.ParseDuration(strings.TrimSpace(delay)); err != nil {
		return Link{}, fmt.Errorf("link %q: latency %q: want a duration such as 50us or 2ms", s, delay)
	}
	if l.Latency < 0 || l.Latency > maxLatency {
		return Link{}, fmt.Errorf("link %q: latency %v: must be 0 to %v", s, l.Latency, maxLatency)
	}
	return l, nil
}

func parseRate(s string) (int64, error) {
	lower := strings.ToLower(s)
	for _, u := range rateUnits {
		digits, ok := strings.CutSuffix(lower, u.suffix)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(digits, 64)
		if err != nil {
			break
		}
		// The upper bound also keeps the conversion to int64 defined.
		if bits := v * u.scale; bits >= 1000 && bits <= 1e13 {
			return int64(math.Round(bits)), nil
		}
		return 0, fmt.Errorf("rate %q: must be 1kbps to 10000Gbps", s)
	}
	return 0, fmt.Errorf("rate %q: want a number with bps, kbps, Mbps or Gbps, such as 200Mbps", s)
}

// IsZero says that the link is not shaped.
func (l Link) IsZero() bool { return l == Link{} }

// String is the form that ParseLink reads, empty for no shaping.
func (l Link) String() string {
	if l.IsZero() {
		return ""
	}
	s := strconv.FormatInt(l.BitsPerSecond, 10) + "bps"
	for _, u := range []struct {
		name  string
		scale float64
	}{{"Gbps", 1e9}, {"Mbps", 1e6}, {"kbps", 1e3}} {
		if v := float64(l.BitsPerSecond); v >= u.scale {
			s = strconv.FormatFloat(v/u.scale, 'f', -1, 64) + u.name
			break
		}
	}
	if l.Latency > 0 {
		s += "," + strings.ReplaceAll(l.Latency.String(), "µ", "u")
	}
	return s
}

// Set parses s into l.
func (l *Link) Set(s string) error {
	parsed, err := ParseLink(s)
	if err != nil {
		return err
	}
	*l = parsed
	return nil
}
