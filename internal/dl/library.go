package dl

import (
	"fmt"
	"strings"

	"github.com/goccl/goccl"
)

// Library is a loaded C library. It stays loaded until the process ends:
// libraries of this kind start threads and register exit handlers, which unloading
// would leave without code. It is safe for concurrent use.
type Library struct {
	name   string
	handle uintptr
}

// Open loads the first library of names that can be loaded, with all its symbols
// bound and none given to libraries loaded later. A name without a slash is
// searched for as the dynamic linker does (LD_LIBRARY_PATH, the linker's cache,
// the system's folders). The error lists every name with the linker's reason and
// wraps goccl.ErrUnsupported.
func Open(names ...string) (*Library, error) { return open(false, names) }

// OpenGlobal is Open for a library whose symbols later ones need: one that loads
// modules of its own.
func OpenGlobal(names ...string) (*Library, error) { return open(true, names) }

func open(global bool, names []string) (*Library, error) {
	if len(names) == 0 {
		return nil, fmt.Errorf("%w: no library named", goccl.ErrInvalid)
	}
	var reasons []string
	for _, name := range names {
		if name == "" || strings.ContainsRune(name, 0) { // "" would be this program itself
			return nil, fmt.Errorf("%w: library name %q", goccl.ErrInvalid, name)
		}
		handle, err := load(name, global)
		if err == nil {
			return &Library{name: name, handle: handle}, nil
		}
		reasons = append(reasons, err.Error())
	}
	return nil, fmt.Errorf("%w: cannot load %s: %s", goccl.ErrUnsupported, strings.Join(names, " or "), strings.Join(reasons, "; "))
}

// Name returns the name under which the library was loaded.
func (l *Library) Name() string { return l.name }

// Lookup returns the function called symbol. The error wraps
// goccl.ErrUnsupported: a library of another version lacks the function.
func (l *Library) Lookup(symbol string) (Func, error) {
	addr, err := find(l.handle, symbol)
	if err != nil {
		return 0, fmt.Errorf("%w: %s has no function %s: %s", goccl.ErrUnsupported, l.name, symbol, err)
	}
	return Func(addr), nil
}

// Symbol is one line of a table of functions: the address of Name goes to Into.
// Without an Optional function the library still works; it is 0 then.
type Symbol struct {
	Name     string
	Into     *Func
	Optional bool
}

// Resolve looks up a table of functions. The error names every function that is
// missing and not optional; those that were found are set all the same.
func (l *Library) Resolve(table []Symbol) error {
	var missing []string
	for _, s := range table {
		addr, err := find(l.handle, s.Name)
		if err != nil {
			addr = 0
			if !s.Optional {
				missing = append(missing, s.Name)
			}
		}
		*s.Into = Func(addr)
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: %s lacks %s: it is too old, or not the library it seems to be",
			goccl.ErrUnsupported, l.name, strings.Join(missing, ", "))
	}
	return nil
}
