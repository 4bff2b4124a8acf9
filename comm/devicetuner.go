package comm

import "github.com/goccl/goccl"

// onDevice is the choice for memory of GPUs that reach each other by a fast link.
// Below some hundred kilobytes latency counts, and one exchange of lines that carry
// their own flags is best; above, the bandwidth of many blocks.
func onDevice(r Request) Decision {
	d := Decision{Algo: goccl.Direct, Proto: goccl.Simple, Channels: channelsFor(r.Bytes, r.MaxChannels)}
	part := r.Bytes
	if r.Coll == goccl.AllGather {
		part /= int64(max(r.Ranks, 1))
	}
	shot := part <= min(r.MaxOneShot, shotBytes/int64(max(r.Ranks-1, 1)))
	switch r.Coll {
	case goccl.AllReduce, goccl.AllGather:
		switch {
		case shot:
			d.Algo, d.Proto, d.Channels = goccl.OneShot, goccl.LL, min(int((part+shotChannel-1)/shotChannel), r.MaxChannels)
		case r.Coll == goccl.AllReduce && r.Ranks <= 8:
			d.Algo = goccl.TwoShot
		case r.Coll == goccl.AllReduce || r.Ranks > 8:
			d.Algo = goccl.Ring
		}
	case goccl.ReduceScatter, goccl.Broadcast, goccl.Reduce:
		if r.Ranks > 8 {
			d.Algo = goccl.Ring
		}
	}
	if d.Algo != goccl.OneShot && r.Bytes/int64(max(r.Ranks, 1)) <= r.MaxChunkLL {
		d.Proto, d.Channels = goccl.LL, 1
	}
	return d
}

const (
	shotBytes   = 256 << 10 // that one-shot sends to all peers together
	shotChannel = 2 << 10   // bytes of a channel by one-shot: two lines a thread
	perChannel  = 64 << 10  // bytes that make another channel worth its cost
)

// channelsFor returns how many channels move so many bytes by Simple.
func channelsFor(bytes int64, most int) int {
	return min(max(int(bytes/perChannel), 1), max(most, 1))
}
