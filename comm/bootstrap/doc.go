// Package bootstrap brings the ranks of a communicator together and keeps them in
// touch: it exchanges what they need to know of each other, and for the rest of
// the communicator's life it carries small messages, failure texts, departures and
// status queries beside the data path.
//
// # Topology
//
// Every rank keeps one connection to a hub, which runs in Root.Serve, usually in
// the process of rank 0. A star rather than a ring, because what matters here is
// not the bytes:
//
//   - a process that dies closes its socket, and the hub tells everybody which rank
//     it was within milliseconds; in a ring only its neighbours would know, and the
//     ring that should carry the news would be broken;
//   - one goroutine puts all events into one order, so that every rank sees the same
//     first failure: the root cause, and not its echoes;
//   - joining costs one connection and two round trips, and the hub always knows who
//     is missing, which is the most frequent question.
//
// The price is that the hub handles all bytes and one descriptor for each rank. An
// all-gather of n parts of b bytes sends n*n*b bytes from the hub; at 1,024 ranks
// and 128 bytes this is 134 MB, 0.11 s of a 10 Gbit/s link, a few times in a
// communicator's life. Data for training never comes this way.
//
// # Protocol
//
// Package wire has the frames. On a new connection the root speaks first:
//
//	root   Banner   a nonce
//	rank   Hello    rank, size, host, pid, private info, job hash; signed with the
//	                secret of the unique id over the nonce
//	root   Accept   its own signature, and the heartbeat interval
//	       Refuse   or why not: other version, job, secret or size, rank taken
//	root   Roster   when all ranks have come: who they are
//
// The secret itself never travels, and signatures are compared in constant time.
// A client that is silent, slow or speaks something else is dropped after 5
// seconds; only a bounded number of such clients is kept at a time, and none of
// them can disturb the ranks.
//
// A rank that is lost or fails while joining ends the joining for all, with the same
// sentence on every rank. A rank whose deadline passes asks the hub, and the hub
// ends the joining (or the collective) for all, naming everyone who is missing:
// either all ranks have a result or all know why not.
//
// # Finding the root
//
// A unique id lists all addresses at which the root can be reached. A rank tries
// them in order, with little time for each at first, and again with more, until it
// gets through or its time is over. Errors of a network or a root that is still
// coming up are retried. The root publishes ordinary addresses of interfaces that
// are up; container bridges, link-local addresses and loopback only in that order
// when there is nothing better, or when asked for.
//
// # Liveness
//
// For ranks on the root's machine the closing of the socket is enough; a stopped
// process keeps its socket open and is not taken for dead, so a debugger does not
// kill a job. Ranks on other machines exchange heartbeats every 5 seconds and are
// lost after 15 without any sign, besides TCP keep-alive. The interval is
// RootOptions.Heartbeat; the root tells it to the ranks, so that both sides agree.
//
// # Structure
//
// hub is the whole state of the root as a machine without I/O, clock or goroutines,
// tested by scripts. server is the I/O around it: one goroutine owns the hub; every
// connection has a reader and, behind a bounded queue, a writer, so that a rank
// which does not read stops nobody. Session is a rank's side.
//
// The Go runtime has already raised the soft limit of open files to the hard one;
// what exceeds that is reported with the limit.
package bootstrap
