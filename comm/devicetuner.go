package comm

import (
	"math/bits"

	"github.com/goccl/goccl"
)

// onDevice is the choice for memory of GPUs that reach each other by a fast link. The
// figures behind it are of two GPUs.
//
// By LL data carries its flags, so nobody waits for a fence; each byte crosses the
// link twice. Where there is a one-shot form a single exchange does all, and pays off
// until what a rank sends to the others takes longer than the steps of a form by
// Simple. Above, only bandwidth counts: many channels, and every byte once.
func onDevice(r Request) Decision {
	n := int64(max(r.Ranks, 2))
	part := r.Bytes // of one rank
	if r.Coll == goccl.AllGather {
		part /= n
	}
	if (r.Coll == goccl.AllReduce || r.Coll == goccl.AllGather) && part <= min(r.MaxOneShot, shotBytes/(n-1)) {
		return Decision{Algo: goccl.OneShot, Proto: goccl.LL, Channels: channelsFor(part, perChannelLL, r.MaxChannels)}
	}
	d := Decision{Algo: goccl.Direct}
	switch {
	case r.Coll == goccl.AllReduce && n <= fewRanks:
		d.Algo = goccl.TwoShot
	case r.Coll == goccl.Broadcast || r.Coll == goccl.Reduce: // a ring sends or gets every byte once
		if n > fewRanks || n > 2 && r.Bytes > piecesLL {
			d.Algo = goccl.Ring
		}
	case n > fewRanks && (r.Coll == goccl.AllReduce || r.Coll == goccl.AllGather || r.Coll == goccl.ReduceScatter):
		d.Algo = goccl.Ring
	}
	d.Proto, d.Channels = byPieces(r.Bytes, n, r.MaxChannels)
	return d
}

// byPieces chooses the protocol of forms that cut bytes into a piece for each of n
// ranks, or of a transfer, n being 1.
func byPieces(bytes, n int64, most int) (goccl.Protocol, int) {
	if bytes <= piecesLL {
		return goccl.LL, channelsFor(bytes/n, perChannelLL, most)
	}
	return goccl.Simple, channelsFor(bytes, perChannelSimple, most)
}

const (
	fewRanks         = 8         // that all reach each other directly: one step instead of a ring's
	shotBytes        = 1 << 20   // that one-shot sends to all peers together
	piecesLL         = 256 << 10 // up to which other forms go by LL
	perChannelLL     = 2 << 10   // bytes that are worth another channel: one line for each of 256 threads
	perChannelSimple = 32 << 10
)

// channelsFor returns how many channels so many bytes are worth, a power of two so
// that few Programs serve all sizes.
func channelsFor(bytes, each int64, most int) int {
	n := 1
	if bytes > each {
		n = 1 << bits.Len64(uint64((bytes-1)/each))
	}
	return min(n, max(most, 1))
}
