// Package plan is the Program: what one rank does for one collective of any
// size, as data. Builders (package algo) make Programs, the lane machine
// (package machine) runs them, the checker (package check) proves them. All of
// it is pure.
//
// A Program has channels; a channel has one to four lanes; a lane is a short
// list of instructions over named buffers, with an outer loop over chunks and
// one inner loop. The size of a Program does not depend on the message: it is
// built once for a Key, which is equal on all ranks by construction, and
// cached. Pointers, alignment and "in place or not" are never part of a Key.
//
// # Instructions
//
//	MOVE    dst* = post(reduce(pre(src...))) over one chunk, slice by slice;
//	        sources are combined left to right in the listed order
//	SIGNAL  add to a word at a peer (release)
//	WAIT    take from a word that a peer adds to (acquire)
//	POSTL   add to a semaphore between lanes of a channel
//	WAITL   take from it
//	LOOP    outer loop over iterations k
//	REP     inner loop j = 0..m-1
//	END     of the innermost LOOP or REP
//
// # Memory order
//
// Within a lane in order; between lanes of a channel by POSTL and WAITL;
// between channels none, chunks are disjoint; between ranks by FIFO slots,
// scratch flags and SIGNAL/WAIT. Nothing else orders anything.
//
// # Scratch
//
// Scratch is memory of a rank in which every peer owns one slot per bank. A
// Program that uses it writes bank epoch mod Banks and advances the epoch once.
// There is no credit: the Program must be a rendezvous, that is, its end on any
// rank happens after its start on every peer.
//
// # Well-formed and right
//
// Validate says whether a Program is well-formed: any executor can step it without
// a panic. Package check proves that the Programs of all ranks together do what
// the collective promises.
package plan
