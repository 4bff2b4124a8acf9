package trace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goccl/goccl"
)

// Version is the format of a dump. A reader refuses another one.
const Version = 1

// maxDump bounds what Read takes from a file: a full recorder with the stacks of
// a large program stays far below.
const maxDump = 256 << 20

// maxSize bounds the group of a dump, which Verdict makes a table of.
const maxSize = 1 << 20

// Dump is what one rank says about one group.
type Dump struct {
	Version int       `json:"version"`
	Job     string    `json:"job,omitempty"`
	Group   string    `json:"group"`
	Rank    int       `json:"rank"` // in the group
	Size    int       `json:"size"`
	Global  []int     `json:"global,omitempty"` // rank in the job, by rank in the group
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Time    time.Time `json:"time"`
	Reason  string    `json:"reason,omitempty"` // why the dump was made: the error, or the signal
	Entries []Entry   `json:"entries"`          // oldest first
	Lags    []Lag     `json:"lags,omitempty"`   // whom this rank waits for
	Stacks  string    `json:"stacks,omitempty"` // all goroutines, as the runtime prints them
}

// FileName returns the name of the file of one rank:
// goccl-JOB-GROUP-rankR.json, with characters that file systems dislike replaced.
func FileName(job, group string, rank int) string {
	name := group
	if job != "" {
		name = job + "-" + group
	}
	safe := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.' {
			return r
		}
		return '_'
	}, name)
	return fmt.Sprintf("goccl-%s-rank%d.json", safe, rank)
}

// Write encodes d as JSON.
func Write(w io.Writer, d *Dump) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	return enc.Encode(d)
}

// Read decodes one dump. It refuses what is no dump, another version, or a rank
// outside its group.
func Read(r io.Reader) (*Dump, error) {
	d := new(Dump)
	if err := json.NewDecoder(io.LimitReader(r, maxDump)).Decode(d); err != nil {
		return nil, fmt.Errorf("%w: not a dump: %w", goccl.ErrInvalid, err)
	}
	switch {
	case d.Version != Version:
		return nil, fmt.Errorf("%w: dump of version %d, this program reads %d", goccl.ErrUnsupported, d.Version, Version)
	case d.Size < 1 || d.Size > maxSize || d.Rank < 0 || d.Rank >= d.Size:
		return nil, fmt.Errorf("%w: dump of rank %d in a group of %d", goccl.ErrInvalid, d.Rank, d.Size)
	case len(d.Global) != 0 && len(d.Global) != d.Size:
		return nil, fmt.Errorf("%w: dump with %d global ranks for a group of %d", goccl.ErrInvalid, len(d.Global), d.Size)
	}
	return d, nil
}

// Save writes d into dir, which is made when it is missing, and returns the path.
// The file appears complete or not at all.
func Save(dir string, d *Dump) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("trace: %w", err)
	}
	f, err := os.CreateTemp(dir, ".goccl-dump-*")
	if err != nil {
		return "", fmt.Errorf("trace: %w", err)
	}
	path := filepath.Join(dir, FileName(d.Job, d.Group, d.Rank))
	err = errors.Join(Write(f, d), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return "", fmt.Errorf("trace: %s: %w", path, err)
	}
	return path, nil
}

// Load reads all dumps in dir, sorted by group and rank. A file that cannot be
// read is an error that names it; a directory without dumps is an error too.
func Load(dir string) ([]*Dump, error) {
	var all []*Dump
	names, err := fs.Glob(os.DirFS(dir), "goccl-*-rank*.json")
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	for _, name := range names {
		d, err := load(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: no goccl-*-rank*.json in %s", goccl.ErrInvalid, dir)
	}
	slices.SortFunc(all, func(a, b *Dump) int {
		if c := strings.Compare(a.Group, b.Group); c != 0 {
			return c
		}
		return a.Rank - b.Rank
	})
	return all, nil
}

func load(path string) (*Dump, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	defer f.Close()
	d, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("trace: %s: %w", path, err)
	}
	return d, nil
}
