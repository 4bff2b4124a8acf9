package table

import (
	"fmt"
	"go/token"
	"regexp"
	"strings"
)

// Group is the shared vocabulary of one topic: one header and one Go file.
type Group struct {
	Name    string   // of the two files; lower case
	Doc     string   // completes "Group NAME: "
	Uses    []string // groups before this one whose types it uses
	Consts  []Const
	Enums   []Enum
	Structs []Struct
}

// Const is a constant with the same name on both sides.
type Const struct {
	Name  string // in the form of Go: MaxWorld
	Type  Type   // an integer type
	Value int64
	Doc   string // after the value, may be empty
}

// Enum is a type and its values. A value is spelled as type and name, on both
// sides: OpMove.
type Enum struct {
	Name   string
	Of     Type   // an unsigned integer type
	Doc    string // completes the sentence "NAME ..."
	Values []Value
}

// Value is a member of an Enum.
type Value struct {
	Name  string
	Value int64
	Doc   string
}

// Struct is a struct with fields in order.
type Struct struct {
	Name   string
	Doc    string // completes the sentence "NAME ..."
	Fields []Field
}

// Field is one field. Its name is that of C++, in_bytes; in Go it is InBytes.
type Field struct {
	Name string
	Type Type
	Doc  string // after the field, may be empty
}

// Layout is where the fields of a struct lie.
type Layout struct {
	Fields      []Placed // the fields of the struct and those that fill holes
	Size, Align int      // bytes
}

// Placed is a field with its offset.
type Placed struct {
	Field
	Offset int
	Hole   bool // made to fill a hole: blank in Go
}

// Layout places the fields by the rules of C.
func (s Struct) Layout() Layout {
	l := Layout{Align: 1}
	at, holes := 0, 0
	fill := func(to int) {
		if to > at {
			pad := Field{Name: fmt.Sprintf("hole%d", holes), Type: Arr(U8, to-at)}
			l.Fields = append(l.Fields, Placed{Field: pad, Offset: at, Hole: true})
			at, holes = to, holes+1
		}
	}
	for _, f := range s.Fields {
		fill(roundUp(at, f.Type.Align))
		l.Fields = append(l.Fields, Placed{Field: f, Offset: at})
		at += f.Type.bytes()
		l.Align = max(l.Align, f.Type.Align)
	}
	fill(roundUp(at, l.Align))
	l.Size = at
	return l
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// goName turns in_bytes into InBytes, and n_ranks into NRanks.
func goName(c string) string {
	var b strings.Builder
	for _, w := range strings.Split(c, "_") {
		if w == "id" {
			w = "ID"
		}
		b.WriteString(strings.ToUpper(w[:1]) + w[1:])
	}
	return b.String()
}

var (
	fieldName = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	groupName = regexp.MustCompile(`^[a-z][a-z0-9]*$`)
	typeName  = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
)

// Check reports the first mistake in groups: names that one of the two languages
// does not take or that occur twice, values that do not fit, empty structs and
// arrays. All groups share one name space, since all Go files are one package.
func Check(groups []Group) error {
	seen := map[string]string{}
	known := map[string]bool{}
	for _, g := range groups {
		if !groupName.MatchString(g.Name) || known[g.Name] || g.Name == "doc" || g.Name == "types" || g.Name == "bytes" {
			return fmt.Errorf("group %q: want a new name of lower-case letters", g.Name)
		}
		for _, u := range g.Uses {
			if !known[u] {
				return fmt.Errorf("group %s uses %q, which is no group before it", g.Name, u)
			}
		}
		known[g.Name] = true
		if err := g.check(seen); err != nil {
			return fmt.Errorf("group %s: %w", g.Name, err)
		}
	}
	return nil
}

func (g Group) check(seen map[string]string) error {
	claim := func(name string) error {
		if !typeName.MatchString(name) {
			return fmt.Errorf("name %q: want an exported Go name without underscores", name)
		}
		if other := seen[name]; other != "" {
			return fmt.Errorf("%s is already declared in group %s", name, other)
		}
		seen[name] = g.Name
		return nil
	}
	for _, c := range g.Consts {
		if err := claim(c.Name); err != nil {
			return err
		}
		if err := fits(c.Name, c.Type, c.Value); err != nil {
			return err
		}
	}
	for _, e := range g.Enums {
		if err := claim(e.Name); err != nil {
			return err
		}
		for _, v := range e.Values {
			if err := claim(e.Name + v.Name); err != nil {
				return err
			}
			if err := fits(e.Name+v.Name, e.Of, v.Value); err != nil {
				return err
			}
		}
	}
	for _, s := range g.Structs {
		if err := claim(s.Name); err != nil {
			return err
		}
		if err := s.check(); err != nil {
			return fmt.Errorf("struct %s: %w", s.Name, err)
		}
	}
	return nil
}

func (s Struct) check() error {
	if len(s.Fields) == 0 {
		return fmt.Errorf("no fields; C++ gives an empty struct one byte, Go none")
	}
	fields := map[string]bool{}
	for _, f := range s.Fields {
		switch {
		case !fieldName.MatchString(f.Name) || token.IsKeyword(f.Name) || strings.HasPrefix(f.Name, "hole"):
			return fmt.Errorf("field %q: want a name like in_bytes", f.Name)
		case fields[goName(f.Name)]:
			return fmt.Errorf("field %s occurs twice", f.Name)
		case f.Type.Len < 0 || f.Type.Size <= 0:
			return fmt.Errorf("field %s has no size", f.Name)
		}
		fields[goName(f.Name)] = true
	}
	return nil
}

// fits reports that v is no value of the integer type t.
func fits(name string, t Type, v int64) error {
	lo, hi := int64(0), int64(-1)
	bits := 8 * t.Size
	switch t.Go {
	case "uint8", "uint16", "uint32":
		hi = 1<<bits - 1
	case "uint64":
		hi = 1<<63 - 1 // as much as a Value holds
	case "int8", "int16", "int32":
		lo, hi = -1<<(bits-1), 1<<(bits-1)-1
	case "int64":
		lo, hi = -1<<63, 1<<63-1
	default:
		return fmt.Errorf("%s: %s is no integer type", name, t.Go)
	}
	if v < lo || v > hi {
		return fmt.Errorf("%s: %d is no %s", name, v, t.Go)
	}
	return nil
}
