package nccl

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goccl/goccl"
)

// auditEvery is how often rank 0 compares what the ranks have called, while they
// call something. It grows with the number of ranks, whose answers it reads.
const (
	auditEvery   = 100 * time.Millisecond
	auditPerRank = time.Millisecond
	auditWithin  = time.Second
)

// audit runs on rank 0 and fails the group when ranks have called different
// collectives. NCCL does not notice: it hangs, or mixes their data.
func (c *control) audit() {
	every := max(auditEvery, time.Duration(c.who.size)*auditPerRank)
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var seen uint64
	for {
		select {
		case <-c.over:
			return
		case <-c.failed:
			return
		case <-ticker.C:
		}
		if c.log.last() == seen {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), auditWithin)
		reports := c.ask(ctx)
		cancel()
		if seq, differ := firstDifference(reports); differ {
			c.Fail(c.disagreement(c.locate(seq)))
			return
		}
		// What some have not called yet is compared the next time.
		if len(reports) == c.who.size && level(reports) {
			seen = reports[c.who.rank].Seq
		}
	}
}

// last returns the number of the last collective.
func (l *callLog) last() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seq
}

// level reports whether all ranks are at the same collective.
func level(reports map[int]report) bool {
	var seq uint64
	first := true
	for _, r := range reports {
		if !first && r.Seq != seq {
			return false
		}
		seq, first = r.Seq, false
	}
	return true
}

// narrow is about how many collectives ranks are asked for at once.
const narrow = 64

// locate looks for the first collective in which ranks differ: at number seq, or
// before it, they do. It asks for a few signatures at a time, closer and closer.
func (c *control) locate(seq uint64) (map[int]report, uint64) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*auditWithin)
	defer cancel()
	low := c.log.oldest()
	for {
		step := max((seq-low)/narrow, 1)
		reports := c.inquire(ctx, span{From: low, To: seq, Step: step})
		first, differ := firstDifference(reports)
		switch {
		case !differ && (step == 1 || ctx.Err() != nil):
			return reports, seq // somebody does not answer
		case !differ: // behind the last of those that were asked for
			low = seq - (seq-low)%step + 1
		case step == 1 || first == low:
			return reports, first
		default:
			low, seq = first-step+1, first
		}
	}
}

// Tags of messages between controls.
const (
	tagAsk uint64 = iota + 1
	tagAnswer
)

// inquire asks all ranks for a span of their collectives.
func (c *control) inquire(ctx context.Context, s span) map[int]report {
	out := map[int]report{c.who.rank: {Calls: c.log.about(s)}}
	question, err := json.Marshal(s)
	if err != nil {
		return out
	}
	for r := range c.who.size {
		if r == c.who.rank || c.session.Send(ctx, r, tagAsk, question) != nil {
			continue
		}
		// A rank that is gone is told of by the session.
		if answer, err := c.session.Recv(ctx, r, tagAnswer); err == nil {
			if rep, ok := readReport(answer); ok {
				out[r] = rep
			}
		}
	}
	return out
}

// message answers a question of rank 0.
func (c *control) message(peer int, tag uint64, data []byte) bool {
	var s span
	if tag != tagAsk || json.Unmarshal(data, &s) != nil {
		return false
	}
	c.spawn(func() {
		ctx, cancel := context.WithTimeout(context.Background(), auditWithin)
		defer cancel()
		// One who does not get the answer does without.
		_ = c.session.Send(ctx, peer, tagAnswer, report{Calls: c.log.about(s)}.encode())
	})
	return true
}

// disagreement is the error of ranks that differ in collective seq: what each of
// them called.
func (c *control) disagreement(reports map[int]report, seq uint64) error {
	said := map[string][]int{}
	for rank, r := range reports {
		for _, call := range r.Calls {
			if call.Seq == seq {
				said[call.Text] = append(said[call.Text], rank)
			}
		}
	}
	var sides []string
	peer := -1
	for text, ranks := range said {
		slices.Sort(ranks)
		if ranks[0] != c.who.rank {
			peer = ranks[0]
		}
		sides = append(sides, fmt.Sprintf("%s (%s) called %s", goccl.Ranks(ranks), c.address(ranks[0]), text))
	}
	slices.Sort(sides)
	if len(sides) == 1 {
		sides[0] += ", and differed in an earlier one that is no longer remembered"
	}
	e := goccl.NewError("", goccl.ErrMismatch)
	e.Rank, e.Peer, e.Group, e.Seq = c.who.rank, peer, c.who.group, seq
	e.Sentence = fmt.Sprintf("goccl: ranks disagree on operation #%d of group %q: %s; all ranks must make the same calls in the same order",
		seq, c.who.group, strings.Join(sides, "; "))
	return e
}

// firstDifference finds the lowest number at which two ranks have different
// signatures.
func firstDifference(reports map[int]report) (uint64, bool) {
	sums := map[uint64]uint64{}
	first, found := uint64(0), false
	for _, r := range reports {
		for _, call := range r.Calls {
			if sum, ok := sums[call.Seq]; !ok {
				sums[call.Seq] = call.Sum
			} else if sum != call.Sum && (!found || call.Seq < first) {
				first, found = call.Seq, true
			}
		}
	}
	return first, found
}
