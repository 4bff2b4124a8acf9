package autotune

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/autotune/model"
	"github.com/goccl/goccl/comm"
)

// Tuner chooses from a Profile. It is immutable, so it can serve any number of
// communicators, and its answers depend on the request and the profile alone.
type Tuner struct {
	constants [model.NumClasses]model.Constants
	best      map[place]model.Choice
	cores     int // for which best holds
	hash      string
}

var _ comm.Tuner = (*Tuner)(nil)

// New returns a Tuner for p, which must not change afterwards. An error says what
// is wrong with the profile.
func New(p *Profile) (*Tuner, error) {
	base, err := DefaultProfile()
	if err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	t := &Tuner{best: make(map[place]model.Choice, len(p.Best)), cores: p.Machine.Cores, hash: p.Hash()}
	for c := range t.constants {
		name := model.Class(c).String()
		k, ok := p.Constants[name]
		if !ok {
			if k, ok = base.Constants[name]; !ok {
				return nil, fmt.Errorf("%w: the default tuning profile lacks the constants of %s", goccl.ErrInvalid, name)
			}
		}
		t.constants[c] = k
	}
	for i := range p.Best {
		at, c, err := p.Best[i].entry()
		if err != nil {
			return nil, err
		}
		t.best[at] = c
	}
	return t, nil
}

// Default returns a Tuner for the profile that is part of the program.
func Default() (*Tuner, error) {
	p, err := DefaultProfile()
	if err != nil {
		return nil, err
	}
	return New(p)
}

// Hash identifies the profile; see Profile.Hash. Ranks of a communicator must
// have equal ones.
func (t *Tuner) Hash() string { return t.hash }

// QueryOf returns what the model needs of a request.
func QueryOf(r comm.Request) model.Query {
	q := model.Query{Coll: r.Coll, Class: model.Network, Window: r.Window, Bytes: max(r.Bytes, 0), Ranks: r.Ranks, RanksPerHost: r.RanksPerHost,
		Cores: r.Cores, MaxOneShot: r.MaxOneShot, MaxChunkLL: r.MaxChunkLL, MaxChunkSimple: r.MaxChunkSimple}
	switch {
	case r.Mapped && r.InProcess:
		q.Class = model.Inproc
	case r.Mapped:
		q.Class = model.Shm
	}
	return q
}

// Choose implements comm.Tuner: the choice of the table if there is one that is
// legal, else the cheapest by prediction.
func (t *Tuner) Choose(r comm.Request) (comm.Decision, error) {
	q := QueryOf(r)
	var room [model.MaxCandidates]model.Choice
	all := model.AppendCandidates(room[:0], &q)
	if len(all) == 0 {
		return comm.Decision{}, fmt.Errorf("%w: no algorithm for %v over %d ranks", goccl.ErrUnsupported, r.Coll, r.Ranks)
	}
	if c, ok := t.measured(&q, r.Hosts); ok && legal(all, c) {
		return comm.Decision(c), nil
	}
	best, least := all[0], 0.0
	for i, c := range all {
		if us := t.predict(&q, c); i == 0 || us < least {
			best, least = c, us
		}
	}
	return comm.Decision(best), nil
}

// measured returns the entry of the table for q.
func (t *Tuner) measured(q *model.Query, hosts int) (model.Choice, bool) {
	if len(t.best) == 0 || hosts > 1 || q.Cores != t.cores {
		return model.Choice{}, false
	}
	c, ok := t.best[placeOf(q)]
	return c, ok
}

// legal reports whether the algorithm of c is among the candidates. Protocols and
// chunks fit all of an algorithm's Programs.
func legal(all []model.Choice, c model.Choice) bool {
	return slices.ContainsFunc(all, func(k model.Choice) bool { return k.Algo == c.Algo })
}

func (t *Tuner) predict(q *model.Query, c model.Choice) float64 {
	return model.Predict(&t.constants[q.Class], q, c)
}

// Candidate is one choice with what is known of it.
type Candidate struct {
	comm.Decision
	US       float64 // predicted microseconds
	Measured bool    // the table of the profile says that it is best
}

// String returns for example "ring/simple 1 channel chunk 32768 12.3 us".
func (c Candidate) String() string {
	s := fmt.Sprintf("%v/%v", c.Algo, c.Proto)
	if c.Channels > 1 {
		s += fmt.Sprintf(" %d channels", c.Channels)
	}
	if c.Chunk > 0 {
		s += fmt.Sprintf(" chunk %d", c.Chunk)
	}
	s += fmt.Sprintf(" %.2f us", c.US)
	if c.Measured {
		s += " (measured best)"
	}
	return s
}

// Explain returns every choice that is legal for r with its predicted time, the
// chosen one first, then the cheapest. It is nil when there is none.
func (t *Tuner) Explain(r comm.Request) []Candidate {
	chosen, err := t.Choose(r)
	if err != nil {
		return nil
	}
	q := QueryOf(r)
	choices := model.AppendCandidates(nil, &q)
	table, ok := t.measured(&q, r.Hosts)
	if c := model.Choice(chosen); !slices.Contains(choices, c) {
		choices = append(choices, c)
	}
	all := make([]Candidate, 0, len(choices))
	for _, c := range choices {
		all = append(all, Candidate{Decision: comm.Decision(c), US: t.predict(&q, c), Measured: ok && c == table})
	}
	slices.SortStableFunc(all, func(a, b Candidate) int {
		if first := a.Decision == chosen; first != (b.Decision == chosen) {
			if first {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.US, b.US)
	})
	return all
}
