// Package pgtest is the conformance suite that every backend of package
// processgroup passes. A backend's test calls Run with a function that connects
// n ranks in this process:
//
//	func TestConformance(t *testing.T) {
//		pgtest.Run(t, "ccl/inproc", func(t *testing.T, n int) []*processgroup.Group { ... })
//	}
//
// The suite holds all collectives against a naive reference over a covering array
// of element types, reductions, counts, roots, alignments and rank counts, and
// then tries what goes wrong in practice: ranks that disagree, aborts, buffers
// that are dropped, handles that are old, goroutines that share a group.
package pgtest
