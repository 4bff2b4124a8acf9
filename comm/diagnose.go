package comm

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/goccl/goccl"
)

// callLog remembers the last calls of this rank, so that a disagreement can be
// put into words after the fact.
type callLog struct {
	ring [32]logged
	n    uint64
}

type logged struct {
	brief
	seq    uint64
	sig    uint32
	number uint64
}

// add records a call.
func (l *callLog) add(t *Task) {
	e, u := &l.ring[l.n%uint64(len(l.ring))], t.unitBuffer()
	l.n++
	e.coll, e.as, e.op, e.dtype, e.count = t.Coll, t.As, t.Op, u.DType, u.Count
	e.send, e.tag, e.root, e.batch = t.Send, t.Tag, t.Root, len(t.Batch)
	e.seq, e.sig, e.number = t.seq, t.sig, t.Number
}

// report is what a rank says of itself when another asks.
type report struct {
	Seq    uint64       `json:"seq"`    // collectives begun
	Number uint64       `json:"number"` // the caller's number of the last call
	Calls  []reportCall `json:"calls"`
	Head   string       `json:"head"` // what it waits in; "" when it waits in nothing
}

type reportCall struct {
	Seq    uint64 `json:"seq"`
	Sig    uint32 `json:"sig"`
	Number uint64 `json:"number"`
	Text   string `json:"text"`
}

// status answers a question of another rank. It runs on the session's goroutine,
// also while this rank's own code is stuck.
func (c *Communicator) status() []byte {
	b, err := json.Marshal(c.report())
	if err != nil {
		return nil
	}
	return b
}

func (c *Communicator) report() report {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := report{Seq: c.seq}
	if c.head != nil {
		r.Head = c.head.Call.describe()
	}
	first := uint64(0)
	if size := uint64(len(c.calls.ring)); c.calls.n > size {
		first = c.calls.n - size
	}
	for i := first; i < c.calls.n; i++ {
		e := &c.calls.ring[i%uint64(len(c.calls.ring))]
		r.Calls = append(r.Calls, reportCall{Seq: e.seq, Sig: e.sig, Number: e.number, Text: e.brief.String()})
		r.Number = e.number
	}
	return r
}

// ask collects the reports of all ranks that answer in time.
func (c *Communicator) ask(ctx context.Context) map[int]report {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	out := map[int]report{}
	for r, b := range c.session.Query(ctx) {
		var rep report
		if json.Unmarshal(b, &rep) == nil {
			out[r] = rep
		}
	}
	return out
}

// question is an operation that does not go on, as the goroutine that asks
// about it sees it.
type question struct {
	seq     uint64
	sig     uint32
	text    string
	number  uint64
	peer    int // whose message clashed, -1: none did
	peerSig uint32
}

// explain finds out in which words two ranks disagree, and fails with them.
func (c *Communicator) explain(q question) {
	reports := c.ask(c.life)
	if err := c.disagreement(q, reports); err != nil {
		c.Fail(err)
		return
	}
	other := fmt.Sprintf("rank %d (%s) sent another operation's data", q.peer, c.address(q.peer))
	for _, call := range reports[q.peer].Calls {
		if call.Sig == q.peerSig {
			other = fmt.Sprintf("rank %d (%s) called %s", q.peer, c.address(q.peer), call.Text)
		}
	}
	c.Fail(c.mismatch(q, fmt.Sprintf("rank %d (%s) called %s; %s", c.rank, c.address(c.rank), q.text, other), q.peer))
}

// disagreement returns an error that names the first collective, up to the one in
// question, in which some rank did something else than this one; nil when the
// reports show none.
func (c *Communicator) disagreement(q question, reports map[int]report) error {
	if q.seq == 0 {
		return nil
	}
	mine := map[uint64]reportCall{}
	for _, call := range c.report().Calls {
		mine[call.Seq] = call
	}
	first, peer := q.seq+1, -1
	for r, rep := range reports {
		for _, call := range rep.Calls {
			if own, ok := mine[call.Seq]; ok && call.Seq > 0 && call.Seq < first && call.Sig != own.Sig && r != c.rank {
				first, peer = call.Seq, r
			}
		}
	}
	if peer < 0 {
		return nil
	}
	q.seq, q.number, q.text = first, mine[first].Number, mine[first].Text
	said := map[string][]int{q.text: {c.rank}}
	for r, rep := range reports {
		for _, call := range rep.Calls {
			if call.Seq == first && r != c.rank {
				said[call.Text] = append(said[call.Text], r)
			}
		}
	}
	var sides []string
	for text, ranks := range said {
		slices.Sort(ranks)
		sides = append(sides, fmt.Sprintf("%s (%s) called %s", goccl.Ranks(ranks), c.address(ranks[0]), text))
	}
	slices.Sort(sides)
	if len(sides) == 1 { // the same words, so the difference is in what was chosen
		sides[0] += ", with other algorithms, windows or chunks: every rank must use the same settings and the same kind of memory"
	}
	return c.mismatch(q, strings.Join(sides, "; "), peer)
}

func (c *Communicator) mismatch(q question, sides string, peer int) error {
	e := goccl.NewError("", goccl.ErrMismatch)
	e.Rank, e.Peer, e.Group, e.Seq, e.Op = c.rank, peer, c.name, q.number, q.text
	e.Sentence = fmt.Sprintf("goccl: ranks disagree on operation #%d of group %q: %s; all ranks must make the same calls in the same order", q.number, c.name, sides)
	return e
}

// address names where a rank runs.
func (c *Communicator) address(rank int) string {
	if rank < 0 || rank >= len(c.peers) {
		return "unknown"
	}
	p := &c.peers[rank]
	return fmt.Sprintf("host %s, pid %d", p.Host, p.PID)
}

// Lag is a rank that has not reached an operation.
type Lag struct {
	Rank  int
	Host  string
	PID   int
	Seq   uint64 // the number of its last call, as its caller counts (Call.Number)
	State string // "running", "stopped", "gone", "no answer"
	What  string // the last call in words
}

// Laggards asks all ranks and returns those that have not made the call with the
// given number (Call.Number), in rank order. It blocks for at most two seconds.
func (c *Communicator) Laggards(ctx context.Context, number uint64) []Lag {
	if c.session == nil {
		return nil
	}
	reports := c.ask(ctx)
	var lags []Lag
	for r := range c.size {
		rep, ok := reports[r]
		if r == c.rank || ok && rep.Number >= number {
			continue
		}
		l := Lag{Rank: r, Host: c.peers[r].Host, PID: c.peers[r].PID, Seq: rep.Number, State: "running"}
		if n := len(rep.Calls); n > 0 {
			l.What = rep.Calls[n-1].Text
		}
		if !ok {
			l.State = c.processState(r)
		}
		lags = append(lags, l)
	}
	return lags
}

// processState says what a rank that does not answer is doing, as far as this
// machine can tell.
func (c *Communicator) processState(rank int) string {
	p, self := &c.peers[rank], &c.peers[c.rank]
	if p.HostID != self.HostID || p.HostID == 0 {
		return "no answer"
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
	if os.IsNotExist(err) {
		return "gone"
	}
	// The state is the first field after the command, which ends in the last ')'.
	_, rest, ok := strings.Cut(string(b[strings.LastIndexByte(string(b), ')')+1:]), " ")
	if err != nil || !ok || rest == "" {
		return "no answer"
	}
	switch rest[0] {
	case 'T', 't':
		return "stopped"
	case 'Z', 'X':
		return "gone"
	}
	return "no answer"
}
