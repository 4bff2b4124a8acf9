package knob

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccl/goccl"
)

const prefix = "GOCCL_"

// Warning is something about the settings that a person should read once.
type Warning struct {
	Name string // the variable it is about
	Text string // one line, with the name in it
}

// String returns the text.
func (w Warning) String() string { return w.Text }

// layer is one place in which settings stand.
type layer struct {
	file  string // empty: the environment
	get   Lookup
	line  func(name string) int
	names []string // of all variables there
}

// at says where in l the variable name stands, empty for the environment.
func (l layer) at(name string) string {
	if l.file == "" {
		return ""
	}
	return fmt.Sprintf(" (%s:%d)", l.file, l.line(name))
}

// Parse reads every knob through lookup. environ holds KEY or KEY=VALUE entries,
// as os.Environ returns them; it is only searched for GOCCL_ names that are not
// known. The error, if any, wraps goccl.ErrInvalid and has one line for each bad
// value, with its knob and what is allowed.
func Parse(lookup Lookup, environ []string) (Settings, []Warning, error) {
	return parse([]layer{environment(lookup, environ)})
}

func environment(lookup Lookup, environ []string) layer {
	l := layer{get: lookup}
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		l.names = append(l.names, name)
	}
	return l
}

// parse takes each knob from the first layer that has it.
func parse(layers []layer) (Settings, []Warning, error) {
	s := Default()
	var warnings []Warning
	var errs []error
	for _, k := range table {
		w, err := k.apply(&s, layers)
		warnings = append(warnings, w...)
		errs = append(errs, err)
	}
	for _, l := range layers {
		warnings = append(warnings, unknown(l)...)
	}
	if err := errors.Join(errs...); err != nil {
		return Default(), warnings, err
	}
	return s, warnings, nil
}

// apply finds k's value and sets it. An empty value counts as unset, as in
// NCCL. A value under the alias that cannot be read is passed over.
func (k Knob) apply(s *Settings, layers []layer) ([]Warning, error) {
	var warnings []Warning
	for _, l := range layers {
		if v, ok := l.get(k.Name); ok && v != "" {
			if err := k.set(s, v); err != nil {
				return warnings, fmt.Errorf("%w: %s=%q%s: %s; allowed: %s", goccl.ErrInvalid, k.Name, v, l.at(k.Name), reason(err), k.Values)
			}
			s.Given = append(s.Given, Given{Name: k.Name, Value: v, Source: k.Name + l.at(k.Name), Uniform: k.Uniform})
			return warnings, nil
		}
		if k.NCCLAlias == "" {
			continue
		}
		v, ok := l.get(k.NCCLAlias)
		if !ok || v == "" {
			continue
		}
		before := *s
		if k.set(s, v) != nil && k.set(s, strings.ToLower(v)) != nil { // NCCL's names are of any case
			*s = before
			warnings = append(warnings, Warning{k.NCCLAlias, fmt.Sprintf("%s=%q%s is not understood and ignored; set %s (%s)",
				k.NCCLAlias, v, l.at(k.NCCLAlias), k.Name, k.Values)})
			continue
		}
		s.Given = append(s.Given, Given{Name: k.Name, Value: v, Source: k.NCCLAlias + l.at(k.NCCLAlias), Uniform: k.Uniform})
		return warnings, nil
	}
	return warnings, nil
}

// reason is err without the sentinel and the list of values, which the caller
// writes itself.
func reason(err error) string {
	if errors.Is(err, goccl.ErrInvalid) {
		return "no such value"
	}
	return err.Error()
}

// unknown warns about names in l that begin with GOCCL_ and mean nothing.
func unknown(l layer) []Warning {
	var known []string
	for _, k := range table {
		known = append(known, k.Name)
	}
	known = append(known, elsewhere...)
	names := slices.Clone(l.names)
	slices.Sort(names)
	var warnings []Warning
	for _, n := range slices.Compact(names) {
		if !strings.HasPrefix(n, prefix) || strings.HasPrefix(n, testPrefix) || slices.Contains(known, n) {
			continue
		}
		text := fmt.Sprintf("%s%s is not a setting of goccl and ignored", n, l.at(n))
		if near, ok := nearest(n, known); ok {
			text += fmt.Sprintf("; did you mean %s?", near)
		}
		warnings = append(warnings, Warning{n, text})
	}
	return warnings
}
