package processgroup

import (
	"runtime"
	"slices"
	"time"

	"github.com/goccl/goccl/trace"
)

// maxStacks bounds the text of the goroutines in a dump.
const maxStacks = 4 << 20

// Dump returns the flight recorder with the stacks of all goroutines; reason says
// why it was made. It stops the program for the time the stacks take. trace.Save
// writes it to a file that the verdict command reads.
func (c *core) Dump(reason string) *trace.Dump {
	ops := c.snapshot()
	d := &trace.Dump{Version: trace.Version, Job: c.cfg.Job, Group: c.cfg.Name, Rank: c.cfg.Rank, Size: c.cfg.Size,
		Global: slices.Clone(c.cfg.GlobalRanks), Host: c.cfg.Host, PID: c.pid, Time: time.Now(), Reason: reason,
		Entries: make([]trace.Entry, len(ops)), Lags: c.watch.lagging(), Stacks: stacks()}
	for i := range ops {
		d.Entries[i] = ops[i].entry()
	}
	return d
}

// entry is the operation in the form of a dump.
func (o *OpInfo) entry() trace.Entry {
	e := trace.Entry{Seq: o.Seq, P2P: o.P2P, Op: o.Op, Count: o.Count, Bytes: o.Bytes, Root: o.Root, Parts: o.Parts,
		Label: o.Label, Algo: o.Algo, Proto: o.Proto, State: o.State, Queued: o.Queued, Started: o.Started, Ended: o.Ended}
	if o.DType.Valid() {
		e.DType = o.DType.String()
	}
	if o.Reduces {
		e.Redop = o.Redop.String()
	}
	return e
}

// stacks returns the goroutines as the runtime prints them.
func stacks() string {
	for buf := make([]byte, 64<<10); ; buf = make([]byte, 2*len(buf)) {
		if n := runtime.Stack(buf, true); n < len(buf) || len(buf) >= maxStacks {
			return string(buf[:n])
		}
	}
}
