// Package release stores a word in the order that publishing needs and no more:
// whoever loads the value atomically sees all that was written before it. The
// store of package sync/atomic also waits until everyone can see it, which on
// amd64 costs a locked instruction: ten nanoseconds where this takes two, and far
// more while another core holds the line. In an operation of a few hundred
// nanoseconds that is worth a package.
//
// Use it where only the order of writes matters: not where the writer goes on to
// load what another goroutine may have stored at the same time.
package release
