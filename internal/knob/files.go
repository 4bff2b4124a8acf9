package knob

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccl/goccl"
)

// systemFile holds settings of all users of a machine.
const systemFile = "/etc/goccl.conf"

// FromProcess reads this process's environment and the configuration files.
func FromProcess() (Settings, []Warning, error) {
	return Load(os.LookupEnv, os.Environ(), os.ReadFile)
}

// Load is Parse with configuration files below the environment: the file that
// GOCCL_CONF_FILE names, else ~/.goccl.conf, and then /etc/goccl.conf. Each line
// is KEY=VALUE; blank lines and lines that begin with # are skipped. readFile
// reads a file, as os.ReadFile does. A file that is not there is skipped, unless
// GOCCL_CONF_FILE asked for it.
func Load(lookup Lookup, environ []string, readFile func(name string) ([]byte, error)) (Settings, []Warning, error) {
	layers := []layer{environment(lookup, environ)}
	named, must := lookup(confFile)
	must = must && named != ""
	if !must {
		if home, ok := lookup("HOME"); ok && home != "" {
			named = filepath.Join(home, ".goccl.conf")
		}
	}
	for _, file := range []string{named, systemFile} {
		if file == "" {
			continue
		}
		text, err := readFile(file)
		if errors.Is(err, fs.ErrNotExist) && !(must && file == named) {
			continue
		}
		if err != nil {
			return Default(), nil, fmt.Errorf("%w: configuration file: %w; mend it or set %s", goccl.ErrInvalid, err, confFile)
		}
		l, err := fileLayer(file, string(text))
		if err != nil {
			return Default(), nil, err
		}
		layers = append(layers, l)
	}
	return parse(layers)
}

// fileLayer reads KEY=VALUE lines. A key that stands twice is an error: one of
// the two would be ignored in silence.
func fileLayer(file, text string) (layer, error) {
	values, lines := map[string]string{}, map[string]int{}
	l := layer{file: file}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if !ok || key == "" {
			return layer{}, fmt.Errorf("%w: %s:%d: %q is not KEY=VALUE", goccl.ErrInvalid, file, i+1, line)
		}
		if at, twice := lines[key]; twice {
			return layer{}, fmt.Errorf("%w: %s:%d: %s was set in line %d already", goccl.ErrInvalid, file, i+1, key, at)
		}
		values[key], lines[key] = value, i+1
		l.names = append(l.names, key)
	}
	l.get = func(name string) (string, bool) { v, ok := values[name]; return v, ok }
	l.line = func(name string) int { return lines[name] }
	return l, nil
}
