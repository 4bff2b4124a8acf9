package autotune

import (
	"bytes"
	_ "embed" // the default profile
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/autotune/model"
)

// ProfileVersion is the format of profiles. It changes with the meaning of a
// constant.
const ProfileVersion = 1

const (
	maxProfile = 4 << 20 // bytes of a file
	maxBest    = 1 << 16 // entries of a table
)

// Profile is what was measured on a machine.
type Profile struct {
	Version int     `json:"version"`
	Machine Machine `json:"machine"`
	// Constants are the costs by class of connection: "inproc", "shm", "network".
	// A class that is absent has those of the default profile.
	Constants map[string]model.Constants `json:"constants"`
	// Best are measured choices, which overrule predictions on machines with as
	// many cores.
	Best []Best `json:"best,omitempty"`
}

// Machine says where a profile was measured.
type Machine struct {
	CPU   string `json:"cpu"`
	Cores int    `json:"cores"`
	OS    string `json:"os"`
	Arch  string `json:"arch"`
	Go    string `json:"go"`
	Note  string `json:"note,omitempty"` // how it was measured
}

// Best is the choice that was fastest for buffers of one size class: those from
// 2^Log2 bytes to less than twice that. It holds for ranks of one host.
type Best struct {
	Class    string `json:"class"`
	Coll     string `json:"coll"`
	Ranks    int    `json:"ranks"`
	Window   bool   `json:"window,omitempty"`
	Log2     int    `json:"log2"`
	Algo     string `json:"algo"`
	Proto    string `json:"proto"`
	Channels int    `json:"channels"`
	Chunk    int64  `json:"chunk,omitempty"` // bytes; 0: the most
}

// Decode reads a profile. What it returns is whole and in range: an error names
// the first thing that is not.
func Decode(r io.Reader) (*Profile, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxProfile+1))
	if err != nil {
		return nil, fmt.Errorf("reading a tuning profile: %w", err)
	}
	if len(data) > maxProfile {
		return nil, fmt.Errorf("%w: tuning profile of more than %d bytes", goccl.ErrInvalid, maxProfile)
	}
	p := &Profile{}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(p); err != nil {
		return nil, fmt.Errorf("%w: tuning profile: %w", goccl.ErrInvalid, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: tuning profile: something follows its end", goccl.ErrInvalid)
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	return p, nil
}

// check refuses what a Tuner could not use.
func (p *Profile) check() error {
	if p.Version != ProfileVersion {
		return fmt.Errorf("%w: tuning profile of version %d; this release reads version %d: measure again with `bench tune`", goccl.ErrUnsupported, p.Version, ProfileVersion)
	}
	if len(p.Best) > maxBest {
		return fmt.Errorf("%w: tuning profile with %d best choices; at most %d", goccl.ErrInvalid, len(p.Best), maxBest)
	}
	for name, k := range p.Constants {
		if _, ok := model.ParseClass(name); !ok {
			return fmt.Errorf("%w: tuning profile: no class of connections is called %q; there are inproc, shm and network", goccl.ErrInvalid, name)
		}
		if !k.Valid() {
			return fmt.Errorf("%w: tuning profile: constants of %s: want times of at most a second, none negative, op_us, fused_us and cache_bytes positive", goccl.ErrInvalid, name)
		}
	}
	for i := range p.Best {
		if _, _, err := p.Best[i].entry(); err != nil {
			return fmt.Errorf("%w: tuning profile: best choice %d: %w", goccl.ErrInvalid, i, err)
		}
	}
	return nil
}

// Encode writes the profile as JSON.
func (p *Profile) Encode(w io.Writer) error {
	if err := p.check(); err != nil {
		return err
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "\t")
	return e.Encode(p)
}

// Load reads the profile in a file.
func Load(path string) (*Profile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("tuning profile: %w", err)
	}
	defer f.Close()
	p, err := Decode(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// Save writes the profile to a file, which it replaces as a whole.
func (p *Profile) Save(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".profile-*")
	if err != nil {
		return fmt.Errorf("tuning profile: %w", err)
	}
	err = errors.Join(p.Encode(f), f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("tuning profile %s: %w", path, err), os.Remove(f.Name()))
	}
	return nil
}

// Hash is 16 hexadecimal digits that differ when two profiles choose differently:
// of the constants, the table and the cores it holds for, not of the rest of the
// machine's description.
func (p *Profile) Hash() string {
	h := fnv.New64a()
	// Maps are encoded in the order of their keys, floats with all their digits.
	err := json.NewEncoder(h).Encode(Profile{Version: p.Version, Machine: Machine{Cores: p.Machine.Cores}, Constants: p.Constants, Best: p.Best})
	if err != nil {
		return "invalid: " + err.Error()
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

//go:embed default.json
var embedded []byte

// defaultProfile is decoded once; a test holds that it can be.
var defaultProfile = sync.OnceValues(func() (*Profile, error) { return Decode(bytes.NewReader(embedded)) })

// DefaultProfile returns the profile that is part of the program. It has no table
// of best choices, since it is for machines it was not measured on.
func DefaultProfile() (*Profile, error) { return defaultProfile() }
