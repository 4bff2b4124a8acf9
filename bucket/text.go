package bucket

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
)

// signature describes what must be equal on all ranks, one line for the
// configuration and one for each parameter. Its hash is compared at
// construction; the text only when hashes differ.
func signature(cfg Config, ps []param) string {
	var b strings.Builder
	fmt.Fprintf(&b, "config first %d bytes %d, norebuild %v, findunused %v, uneven %v, syncfrom %d, nosyncvalues %v, hook %s\n",
		cfg.FirstBytes, cfg.Bytes, cfg.NoRebuild, cfg.FindUnused, cfg.Uneven, cfg.SyncFrom, cfg.NoSyncValues, hookName(cfg.Hook))
	for _, p := range ps {
		fmt.Fprintf(&b, "%q %v x %d", p.name, p.item.dtype, p.count)
		if p.item.sparse {
			b.WriteString(" sparse")
		}
		if p.item.frozen {
			b.WriteString(" frozen")
		}
		if p.value.Addr != 0 {
			fmt.Fprintf(&b, ", value %v", p.value.DType)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// hookName is what ranks compare of a hook: its String method, or else its type.
func hookName(h Hook) string {
	if s, ok := h.(fmt.Stringer); ok {
		return s.String()
	}
	return fmt.Sprintf("%T", h)
}

// digest is the hash of a text that ranks compare.
func digest(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}

// maxQuoted bounds what of another rank's text enters a message.
const maxQuoted = 200

// firstDifference returns the number of the first line in which a and b differ
// and both lines; a missing line is "nothing". The texts may come from another
// rank and hold anything.
func firstDifference(a, b string) (line int, la, lb string) {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := 0; i < max(len(as), len(bs)); i++ {
		x, y := lineAt(as, i), lineAt(bs, i)
		if x != y {
			return i, clip(x), clip(y)
		}
	}
	return -1, "", ""
}

func lineAt(lines []string, i int) string {
	if i >= len(lines) || lines[i] == "" {
		return "nothing"
	}
	return lines[i]
}

// clip makes s fit for a message: printable, of one line, bounded.
func clip(s string) string {
	s = strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
	if len(s) > maxQuoted {
		return strings.ToValidUTF8(s[:maxQuoted], "") + "..."
	}
	return s
}
