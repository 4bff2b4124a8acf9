// Package wire is the encoding of the bootstrap and control protocol: frames
// and messages as plain functions over bytes. It opens nothing, waits for
// nothing and keeps no state, so it can be fuzzed and its bytes are fixed by
// golden files.
//
// A frame is a header of 8 bytes and a body:
//
//	offset  size  field
//	0       2     magic 0x67 0xc1
//	2       1     Version of the sender
//	3       1     Kind
//	4       4     body length, little endian
//
// The version stands in every frame, at a place that never moves, so that two
// releases recognise each other whatever the bodies look like. Integers are
// little endian and of fixed width; bytes and texts carry a 4-byte length. There
// is exactly one encoding of every message: Decode rejects trailing bytes,
// lengths above the limits and texts that are not UTF-8.
//
//	Kind    direction     says
//	Banner  root to rank  first frame of a connection: a nonce to sign
//	Hello   rank to root  rank, world size, process, host, private info, signature
//	Accept  root to rank  the root's signature and the heartbeat interval
//	Refuse  root to rank  why this rank, or the whole world, cannot join
//	Roster  root to rank  all ranks have joined: who they are
//	Ping    both          nothing; proves life on an idle connection
//	Bye     rank to root  this rank leaves normally
//	Put     rank to root  its part of an all-gather or barrier
//	All     root to rank  the parts of all ranks, in rank order
//	End     root to rank  the collective cannot complete, and why
//	Expire  rank to root  the caller's deadline for a collective has passed
//	Relay   both          a small tagged message from one rank to another
//	Query   both          asks a rank for its status
//	Status  both          the answer to a Query
//	Fail    rank to root  this rank gives up, and why
//	Event   root to rank  a rank failed, left or was lost
package wire
