package bucket

import (
	"fmt"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
)

// Param is one parameter of a model, or one of its buffers.
type Param struct {
	// Name appears in errors, traces and State. Names are unique.
	Name string
	// Value is the parameter itself: New broadcasts it from Config.SyncFrom.
	// The zero Buffer leaves it alone.
	Value device.Buffer
	// Grad is where the framework puts the gradient: contiguous, of as many
	// elements as Value. Ready copies it into the bucket and Finish copies the
	// average back. When Grad.Addr is 0 the gradient lives in the bucket
	// itself, at Reducer.View: one copy of all gradients less. Grad.Count and
	// Grad.DType may then say what Value does not.
	Grad device.Buffer
	// Sparse puts the gradient into a bucket of its own, as one does with a
	// large embedding of which few rows change: its place in the order is then
	// its own. Its buffer is dense and is reduced whole; pairs of indices and
	// rows are not understood.
	Sparse bool
	// Frozen says that there is no gradient. The value is broadcast at
	// construction and never reduced: frozen weights and running statistics.
	Frozen bool
}

// param is a checked Param.
type param struct {
	name   string
	value  device.Buffer
	grad   device.Buffer // Addr 0: a view into the bucket
	count  int
	item   item
	inView bool
}

// resolve checks the parameters and completes what one of Value and Grad says
// for the other.
func resolve(ps []Param) ([]param, error) {
	seen := make(map[string]int, len(ps))
	out := make([]param, len(ps))
	for i, p := range ps {
		if p.Name == "" {
			return nil, fmt.Errorf("%w: parameter %d has no name; names tell ranks and readers which gradient is meant", goccl.ErrInvalid, i)
		}
		if j, dup := seen[p.Name]; dup {
			return nil, fmt.Errorf("%w: parameters %d and %d are both called %q", goccl.ErrInvalid, j, i, p.Name)
		}
		seen[p.Name] = i
		r, err := resolveOne(p)
		if err != nil {
			return nil, fmt.Errorf("parameter %q: %w", p.Name, err)
		}
		out[i] = r
	}
	return out, overlaps(out)
}

func resolveOne(p Param) (param, error) {
	r := param{name: p.Name, value: p.Value, grad: p.Grad}
	hasValue, hasGrad := p.Value.DType.Valid(), p.Grad.DType.Valid()
	switch {
	case !hasValue && !hasGrad:
		return r, fmt.Errorf("%w: neither Value nor Grad says how many elements of which type it has", goccl.ErrInvalid)
	case p.Frozen && !hasValue:
		return r, fmt.Errorf("%w: it is frozen and has no Value to broadcast", goccl.ErrInvalid)
	}
	if p.Value.Addr != 0 {
		if err := p.Value.Check(); err != nil {
			return r, fmt.Errorf("value: %w", err)
		}
	}
	shape := p.Grad
	if !hasGrad {
		shape = p.Value
	}
	if hasValue && hasGrad && p.Value.Count != p.Grad.Count {
		return r, fmt.Errorf("%w: the value has %d elements and the gradient %d", goccl.ErrInvalid, p.Value.Count, p.Grad.Count)
	}
	if p.Grad.Addr != 0 {
		if err := p.Grad.Check(); err != nil {
			return r, fmt.Errorf("gradient: %w", err)
		}
	}
	if !p.Frozen && !shape.DType.Reducible() {
		return r, fmt.Errorf("%w: gradients of type %v cannot be summed", goccl.ErrUnsupported, shape.DType)
	}
	if shape.Count < 0 {
		return r, fmt.Errorf("%w: %d elements", goccl.ErrInvalid, shape.Count)
	}
	r.count = shape.Count
	r.inView = p.Grad.Addr == 0 && !p.Frozen
	r.item = item{key: key{shape.DType, shape.Device}, bytes: int64(shape.Bytes()), sparse: p.Sparse, frozen: p.Frozen}
	return r, nil
}

// overlaps refuses two gradients that share memory: a tied parameter is
// announced once, under one name.
func overlaps(ps []param) error {
	at := make(map[uintptr]int, len(ps))
	for i, p := range ps {
		if p.grad.Addr == 0 || p.count == 0 || p.item.frozen {
			continue
		}
		if j, dup := at[p.grad.Addr]; dup {
			return fmt.Errorf("%w: parameters %q and %q have one gradient in memory; give a tied parameter once", goccl.ErrInvalid, ps[j].name, p.name)
		}
		at[p.grad.Addr] = i
	}
	return nil
}
