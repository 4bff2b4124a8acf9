// Package knob is the registry of environment settings: the one place that
// knows their names, defaults, allowed values and owners. Nothing else in the
// library reads the environment; package dist asks here once and hands the
// result on as data.
//
// A setting is called GOCCL_X. Where NCCL has one with the same meaning, NCCL_X
// is honoured too, and GOCCL_X wins. A value may also stand in a configuration
// file of KEY=VALUE lines; the environment wins over files.
//
// A bad value of GOCCL_X is an error. A bad value of NCCL_X is a warning, since
// it may have been written for NCCL, which knows more of them.
package knob

import (
	"fmt"
	"strings"
)

// Lookup returns the value of an environment variable and whether it is set, as
// os.LookupEnv does.
type Lookup func(name string) (value string, ok bool)

// Knob describes one setting.
type Knob struct {
	Name      string // GOCCL_...
	NCCLAlias string // NCCL_... with the same meaning, or empty
	Default   string // what an unset knob means, in words of Values
	Values    string // what is allowed, for messages
	Doc       string // what it does, one sentence
	Owner     string // package that acts on it
	// Uniform says that ranks of a job must agree on the value, since it decides
	// which programs they run.
	Uniform bool

	set func(s *Settings, value string) error
}

// All returns every knob, sorted by name. Callers may change the slice.
func All() []Knob { return append([]Knob(nil), table...) }

// Find returns the knob with the given GOCCL_ name.
func Find(name string) (Knob, bool) {
	for _, k := range table {
		if k.Name == name {
			return k, true
		}
	}
	return Knob{}, false
}

// Table writes every knob as text, in the form in which a person reads it.
func Table() string {
	var b strings.Builder
	for _, k := range table {
		fmt.Fprintf(&b, "%s", k.Name)
		if k.NCCLAlias != "" {
			fmt.Fprintf(&b, " (%s)", k.NCCLAlias)
		}
		fmt.Fprintf(&b, "\n    %s\n    values: %s; default: %s; owner: %s", k.Doc, k.Values, k.Default, k.Owner)
		if k.Uniform {
			b.WriteString("; equal on all ranks")
		}
		b.WriteString("\n")
	}
	return b.String()
}
