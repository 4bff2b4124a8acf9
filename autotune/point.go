package autotune

import (
	"fmt"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/autotune/model"
	"github.com/goccl/goccl/comm"
)

// Point is one collective of one size with the measured time of every candidate.
type Point struct {
	Class  string `json:"class"`
	Coll   string `json:"coll"`
	Window bool   `json:"window,omitempty"`
	Bytes  int64  `json:"bytes"`
	Ranks  int    `json:"ranks"` // of one host
	Cores  int    `json:"cores"`
	// Barrier says that the times are those of the operation and a barrier after
	// it: of a collective that ends on some ranks before others have begun, and
	// that would otherwise overlap with the next.
	Barrier        bool   `json:"barrier,omitempty"`
	MaxOneShot     int64  `json:"max_one_shot"`
	MaxChunkLL     int64  `json:"max_chunk_ll"`
	MaxChunkSimple int64  `json:"max_chunk_simple"`
	Times          []Time `json:"times"`
}

// Time is the measured time of one candidate.
type Time struct {
	Algo     string  `json:"algo"`
	Proto    string  `json:"proto"`
	Channels int     `json:"channels"`
	Chunk    int64   `json:"chunk,omitempty"`
	US       float64 `json:"us"`
}

// NewPoint makes the point of a request, without times.
func NewPoint(r comm.Request) Point {
	q := QueryOf(r)
	return Point{Class: q.Class.String(), Coll: q.Coll.String(), Window: q.Window, Bytes: q.Bytes, Ranks: q.Ranks, Cores: q.Cores, Barrier: q.Coll.Rooted(),
		MaxOneShot: q.MaxOneShot, MaxChunkLL: q.MaxChunkLL, MaxChunkSimple: q.MaxChunkSimple}
}

// Add appends the time of one choice, in microseconds.
func (p *Point) Add(c model.Choice, us float64) {
	p.Times = append(p.Times, Time{c.Algo.String(), c.Proto.String(), c.Channels, c.Chunk, us})
}

// Request returns what a Tuner was asked.
func (p *Point) Request() (comm.Request, error) {
	class, ok := model.ParseClass(p.Class)
	if !ok {
		return comm.Request{}, fmt.Errorf("%w: no class of connections is called %q", goccl.ErrInvalid, p.Class)
	}
	coll, err := goccl.ParseCollective(p.Coll)
	if err != nil {
		return comm.Request{}, err
	}
	return comm.Request{Coll: coll, Bytes: p.Bytes, DType: goccl.F32, Op: goccl.Sum, Ranks: p.Ranks, Mapped: class != model.Network,
		InProcess: class == model.Inproc, Window: p.Window, MaxOneShot: p.MaxOneShot, MaxChunkLL: p.MaxChunkLL, MaxChunkSimple: p.MaxChunkSimple,
		Hosts: 1, RanksPerHost: p.Ranks, Cores: p.Cores}, nil
}

func (t *Time) choice() (model.Choice, error) {
	a, err := goccl.ParseAlgorithm(t.Algo)
	if err != nil {
		return model.Choice{}, err
	}
	p, err := goccl.ParseProtocol(t.Proto)
	return model.Choice{Algo: a, Proto: p, Channels: t.Channels, Chunk: t.Chunk}, err
}

// best returns the fastest choice of the point; an error when it has no times.
func (p *Point) best() (model.Choice, float64, error) {
	var best *Time
	for i := range p.Times {
		if t := &p.Times[i]; t.US > 0 && (best == nil || t.US < best.US) {
			best = t
		}
	}
	if best == nil {
		return model.Choice{}, 0, fmt.Errorf("%w: %s of %d bytes over %d ranks has no times", goccl.ErrInvalid, p.Coll, p.Bytes, p.Ranks)
	}
	c, err := best.choice()
	return c, best.US, err
}

// Verdict is how a Tuner's choice did at a point.
type Verdict struct {
	Chosen, Best comm.Decision
	US           float64 // measured, of the choice; 0 when it was not measured
	BestUS       float64 // measured, of the fastest
	Predicted    float64 // of the choice, with the barrier if there is one
}

// Loss is the time of the choice over that of the fastest, at least 1; 0 when
// the choice was not measured.
func (v Verdict) Loss() float64 { return v.US / v.BestUS }

// Judge compares what t chooses at p with what was measured to be best.
func (t *Tuner) Judge(p *Point) (Verdict, error) {
	r, err := p.Request()
	if err != nil {
		return Verdict{}, err
	}
	best, us, err := p.best()
	if err != nil {
		return Verdict{}, err
	}
	d, err := t.Choose(r)
	if err != nil {
		return Verdict{}, err
	}
	q := QueryOf(r)
	v := Verdict{Chosen: d, Best: comm.Decision(best), BestUS: us, Predicted: t.predict(&q, model.Choice(d))}
	if p.Barrier {
		b, c := model.BarrierOf(&q)
		v.Predicted += t.predict(&b, c)
	}
	for i := range p.Times {
		c, err := p.Times[i].choice()
		if err != nil {
			return Verdict{}, err
		}
		if c == model.Choice(d) {
			v.US = p.Times[i].US
		}
	}
	return v, nil
}
