// Package graph is the shape of a communicator: in which order the ranks form
// rings, how they form trees, and whether all of them map each other's memory.
// It is a pure function of what the ranks said of themselves, so every rank
// computes the same one.
package graph

import (
	"fmt"
	"slices"
)

// Graph is the shape. It is immutable once made.
type Graph struct {
	NRanks int
	Ring   []int   // a cycle over all ranks; channels share it
	Trees  [2]Tree // a double binary tree: every rank is inner in at most one
	Mapped bool    // every rank maps every other's memory
}

// Tree is one rooted tree over all ranks.
type Tree struct {
	Parent   []int   // by rank; -1 at the root
	Children [][]int // by rank, at most two, in the order in which sums are formed
}

// Root returns the rank without a parent.
func (t Tree) Root() int { return slices.Index(t.Parent, -1) }

// Place is what the shape depends on: which ranks share a host, and whether two
// ranks map each other's memory.
type Place struct {
	Host   uint64 // equal on ranks of one host
	Mapped bool   // this rank maps all others
}

// New returns the graph of the ranks at the given places. Ranks of one host are
// neighbours on the ring, hosts in the order of their first rank.
func New(places []Place) (*Graph, error) {
	n := len(places)
	if n == 0 {
		return nil, fmt.Errorf("graph: no ranks")
	}
	g := &Graph{NRanks: n, Mapped: true}
	first := map[uint64]int{}
	for r, p := range places {
		g.Mapped = g.Mapped && p.Mapped
		if _, ok := first[p.Host]; !ok {
			first[p.Host] = r
		}
		g.Ring = append(g.Ring, r)
	}
	slices.SortStableFunc(g.Ring, func(a, b int) int { return first[places[a].Host] - first[places[b].Host] })
	g.Trees = doubleTree(g.Ring)
	return g, nil
}

// doubleTree makes two binary trees over the chain such that a rank that is
// inner in one is a leaf in the other (for an even number of ranks; one rank is
// inner in both when the number is odd). Sanders, Speck and Träff, "Two-tree
// algorithms for full bandwidth broadcast, reduction and scan" (2009).
func doubleTree(chain []int) [2]Tree {
	n := len(chain)
	first := inorder(chain)
	other := make([]int, n)
	for i, r := range chain {
		if n%2 == 0 {
			other[n-1-i] = r // mirrored: even places become odd ones
		} else {
			other[(i+1)%n] = r // shifted by one
		}
	}
	return [2]Tree{first, inorder(other)}
}

// inorder makes the binary tree whose in-order walk is the chain with the leaves
// at the even places: place i (from 1) has as many levels below it as i has
// trailing zero bits.
func inorder(chain []int) Tree {
	n := len(chain)
	t := Tree{Parent: make([]int, n), Children: make([][]int, n)}
	top := 1
	for top*2 <= n {
		top *= 2
	}
	for i := 1; i <= n; i++ {
		p := parentPlace(i, n, top)
		r := chain[i-1]
		if p == 0 {
			t.Parent[r] = -1
			continue
		}
		t.Parent[r] = chain[p-1]
		t.Children[chain[p-1]] = append(t.Children[chain[p-1]], r)
	}
	return t
}

// parentPlace returns the parent of place i (from 1) among n, 0 for the root at
// place top. A parent that would lie past n is replaced by its own parent.
func parentPlace(i, n, top int) int {
	for p := i; p != top; {
		low := p & -p
		up := (p - low) | low<<1 // flip to the next level: p-low or p+low
		if up <= n {
			return up
		}
		p = up
		if p > 2*top {
			return top
		}
	}
	return 0
}
