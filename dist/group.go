package dist

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/process_group/backend"
)

// New makes the group of the given ranks of the job, in that order: rank i of the
// group is ranks[i]. All ranks of the job call it with the same arguments and in
// the same order; those that are not in the group get nil and no error at once,
// the others wait for each other. When the world fails the group fails with it.
// Job.Close closes the group unless the caller did.
func (j *Job) New(ctx context.Context, name string, ranks []int) (*Group, error) {
	if err := j.checkRanks(name, ranks); err != nil {
		return nil, err
	}
	n := j.count("new " + name)
	if !slices.Contains(ranks, j.Rank()) {
		return nil, nil
	}
	return j.form(ctx, name, fmt.Sprintf("new/%s/%d", name, n), slices.Clone(ranks), nil)
}

func (j *Job) checkRanks(name string, ranks []int) error {
	fail := func(format string, a ...any) error {
		e := goccl.NewError("new", fmt.Errorf("%w: %s", goccl.ErrInvalid, fmt.Sprintf(format, a...)))
		e.Rank, e.Group = j.Rank(), name
		return e
	}
	switch {
	case name == "" || len(name) > 200:
		return fail("a group needs a name of 1 to 200 bytes")
	case len(ranks) == 0:
		return fail("no ranks")
	}
	seen := map[int]bool{}
	for _, r := range ranks {
		if r < 0 || r >= j.Size() {
			return fail("rank %d in a job of %d ranks", r, j.Size())
		}
		if seen[r] {
			return fail("rank %d stands in the list twice", r)
		}
		seen[r] = true
	}
	return nil
}

// count returns how many groups were made under this name before: equal on all
// ranks because they make them in the same order.
func (j *Job) count(name string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := j.counts[name]
	j.counts[name] = n + 1
	return n
}

// Split makes a group of the ranks of g that give the same color, ordered by key
// and then by their rank in g. All ranks of g call it; a negative color gets nil.
// It is a collective of g.
func (j *Job) Split(ctx context.Context, g *Group, color, key int) (*Group, error) {
	g = g.On(nil)
	j.mu.Lock()
	from, known := j.origins[g]
	j.mu.Unlock()
	if !known {
		return nil, fmt.Errorf("goccl: split group %q: %w: it is not a group of this job", g.Name(), goccl.ErrInvalid)
	}
	mine := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(color)), uint64(key))
	all, err := g.Exchange(ctx, mine)
	if err != nil {
		return nil, fmt.Errorf("goccl: split group %q: %w", g.Name(), err)
	}
	n := j.count("split " + from.key)
	splitter, splits := from.engine.(backend.Splitter)
	if color < 0 {
		if splits {
			err = splitter.SitOut(ctx)
		}
		return nil, err
	}
	members, err := membersOf(g, all, color)
	if err != nil {
		return nil, err
	}
	var split *backend.Split
	if splits {
		split = &backend.Split{Parent: from.engine, Color: color, Key: key}
	}
	return j.form(ctx, fmt.Sprintf("%s/%d", g.Name(), color), fmt.Sprintf("%s/split%d/%d", from.key, n, color), members, split)
}

// membersOf returns the ranks of the job that gave color, in the order of the new
// group.
func membersOf(g *Group, all [][]byte, color int) ([]int, error) {
	word := func(r, i int) int { return int(int64(binary.LittleEndian.Uint64(all[r][8*i:]))) }
	var members []int
	for r := range all {
		if len(all[r]) != 16 {
			return nil, fmt.Errorf("goccl: split group %q: %w: rank %d sent %d bytes", g.Name(), goccl.ErrMismatch, r, len(all[r]))
		}
		if word(r, 0) == color {
			members = append(members, r)
		}
	}
	slices.SortStableFunc(members, func(a, b int) int { return cmp.Compare(word(a, 1), word(b, 1)) })
	for i, r := range members {
		global, err := g.GlobalRank(r)
		if err != nil {
			return nil, err
		}
		members[i] = global
	}
	return members, nil
}
