package dist

import (
	"context"
	"fmt"

	"github.com/goccl/goccl"
)

// Axis is one dimension of a Mesh.
type Axis struct {
	Name string
	Size int
}

// Mesh arranges the ranks of a group along named axes, the last of which varies
// fastest: with {"pp", 2} and {"dp", 3}, ranks 0, 1 and 2 are the first stage's.
type Mesh struct {
	axes  []Axis
	coord []int
	along []*Group
}

// Mesh makes the groups along each axis: for every axis the ranks that differ in
// their place on this axis alone. The sizes multiplied are that of g. All ranks of
// g call it with the same axes; it is a collective of g.
func (j *Job) Mesh(ctx context.Context, g *Group, axes ...Axis) (*Mesh, error) {
	if err := checkAxes(g, axes); err != nil {
		return nil, err
	}
	m := &Mesh{axes: axes, coord: make([]int, len(axes)), along: make([]*Group, len(axes))}
	stride, rest := 1, g.Rank()
	for i := len(axes) - 1; i >= 0; i-- {
		m.coord[i] = rest % axes[i].Size
		rest /= axes[i].Size
	}
	for i := len(axes) - 1; i >= 0; i-- {
		// The line is named by the rank at its start.
		line := g.Rank() - m.coord[i]*stride
		sub, err := j.Split(ctx, g, line, m.coord[i])
		if err != nil {
			return nil, fmt.Errorf("axis %q: %w", axes[i].Name, err)
		}
		m.along[i] = sub
		stride *= axes[i].Size
	}
	return m, nil
}

func checkAxes(g *Group, axes []Axis) error {
	ranks, seen := 1, map[string]bool{}
	for _, a := range axes {
		if a.Name == "" || a.Size < 1 || seen[a.Name] {
			return fmt.Errorf("goccl: mesh on group %q: %w: axis %q of size %d: axes need different names and at least one rank", g.Name(), goccl.ErrInvalid, a.Name, a.Size)
		}
		seen[a.Name] = true
		ranks *= a.Size
	}
	if len(axes) == 0 || ranks != g.Size() {
		return fmt.Errorf("goccl: mesh on group %q: %w: axes of %d ranks together for a group of %d", g.Name(), goccl.ErrInvalid, ranks, g.Size())
	}
	return nil
}

// Along returns the group of the ranks on this rank's line along the axis; nil
// when no axis has that name.
func (m *Mesh) Along(axis string) *Group {
	if i := m.index(axis); i >= 0 {
		return m.along[i]
	}
	return nil
}

// Place returns where this rank is on the axis; -1 when no axis has that name.
func (m *Mesh) Place(axis string) int {
	if i := m.index(axis); i >= 0 {
		return m.coord[i]
	}
	return -1
}

func (m *Mesh) index(axis string) int {
	for i, a := range m.axes {
		if a.Name == axis {
			return i
		}
	}
	return -1
}
