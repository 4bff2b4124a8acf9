package knob

import (
	"errors"
	"strings"
)

// Interfaces selects network interfaces by name, in NCCL's notation: a list of
// prefixes "eth,ib", exact names with a leading "=", or everything but the list
// with a leading "^". The zero value selects all.
type Interfaces struct {
	Names   []string
	Exclude bool // Names are left out
	Exact   bool // Names are whole names, not prefixes
}

// parseInterfaces reads NCCL's notation.
func parseInterfaces(v string) (Interfaces, error) {
	var i Interfaces
	v, i.Exclude = strings.CutPrefix(v, "^")
	v, i.Exact = strings.CutPrefix(v, "=")
	for _, n := range strings.Split(v, ",") {
		if n = strings.TrimSpace(n); n == "" || strings.ContainsAny(n, "^= ") {
			return Interfaces{}, errors.New("not a list of interface names")
		}
		i.Names = append(i.Names, n)
	}
	return i, nil
}

// Match reports whether the interface called name is selected.
func (i Interfaces) Match(name string) bool {
	if len(i.Names) == 0 {
		return true
	}
	for _, n := range i.Names {
		if n == name || !i.Exact && strings.HasPrefix(name, n) {
			return !i.Exclude
		}
	}
	return i.Exclude
}
