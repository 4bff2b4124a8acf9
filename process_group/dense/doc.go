// Package dense is the face of package processgroup for *tensor.Dense of
// gorgonia.org/tensor. It is the only library package that imports gorgonia.
//
//	g := dense.Wrap(group)
//	err := g.AllReduce(t, goccl.Avg).Wait(ctx)
//
// What is taken. A collective works on memory without gaps in row-major order:
// whole tensors, reshapes, slices of the first dimension, scalars and tensors of
// size zero. All else is refused with an error that says why: a transposed or
// column-major tensor, since another rank could not know of the other order; a
// view with gaps; a masked one; element types that no other rank can name.
// Through takes the first two: it packs such a view into a temporary in row-major
// order, waits, and unpacks, touching nothing between the elements. There is no
// asynchronous form of that, because the elements must be put back when the
// operation has ended and a Work runs nothing of the user's.
//
// Lifetime. Address and length are taken at the call. The memory, not the header,
// is kept until the operation ends, so a tensor may go back to gorgonia's pool
// in the meantime; its memory must not be written.
package dense

// gorgonia's tensors depend on a package that refuses to start on versions of Go
// that it does not know. Its last version no longer checks; naming it here keeps
// that version in the go.mod of everybody who imports this package.
import _ "go4.org/unsafe/assume-no-moving-gc"
