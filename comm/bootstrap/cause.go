package bootstrap

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/goccl/goccl"
)

// Cause is a failure as it travels to the other ranks by Session.Fail: every rank
// makes the same error of it.
type Cause struct {
	Kind     string `json:"kind"`
	Sentence string `json:"sentence"`
	Op       string `json:"op,omitempty"`
	Seq      uint64 `json:"seq,omitempty"`
	Peer     int    `json:"peer"`
	Missing  []int  `json:"missing,omitempty"`
}

var kinds = []struct {
	name string
	err  error
}{
	{"timeout", goccl.ErrTimeout}, {"lost", goccl.ErrPeerLost}, {"mismatch", goccl.ErrMismatch}, {"aborted", goccl.ErrAborted},
	{"closed", goccl.ErrClosed}, {"unsupported", goccl.ErrUnsupported}, {"invalid", goccl.ErrInvalid},
}

// CauseOf writes err of rank, which runs at address, down for the other ranks. The
// sentence is that of err, with the rank in front unless it says who is meant.
func CauseOf(err error, rank int, address string) Cause {
	k := Cause{Kind: "aborted", Sentence: err.Error(), Peer: rank}
	if !strings.HasPrefix(k.Sentence, "goccl: ") {
		k.Sentence = fmt.Sprintf("goccl: rank %d (%s) failed: %s", rank, address, k.Sentence)
	}
	for _, x := range kinds {
		if errors.Is(err, x.err) {
			k.Kind = x.name
			break
		}
	}
	var e *goccl.Error
	if errors.As(err, &e) {
		k.Op, k.Seq, k.Missing = e.Op, e.Seq, e.Missing
		if e.Peer >= 0 {
			k.Peer = e.Peer
		}
	}
	return k
}

// Text writes k for Session.Fail.
func (k Cause) Text() string {
	b, err := json.Marshal(k)
	if err != nil { // a sentence is always valid JSON; keep the bare text all the same
		return k.Sentence
	}
	return string(b)
}

// CauseFrom reads what Text wrote on rank peer; any other text is a sentence.
func CauseFrom(text string, peer int) Cause {
	var k Cause
	if json.Unmarshal([]byte(text), &k) != nil {
		return Cause{Kind: "aborted", Peer: peer, Sentence: text}
	}
	return k
}

// LostCause is the cause that the loss of a rank is.
func LostCause(e Event) Cause {
	return Cause{Kind: "lost", Peer: e.Rank,
		Sentence: fmt.Sprintf("goccl: rank %d (host %s, pid %d) is gone: %s; look into that rank's own log", e.Rank, e.Host, e.PID, e.Text)}
}

// Err is the cause as the error of rank on a group. wrapped is the original on the
// rank where it arose, so that errors.Is finds what the user passed; nil elsewhere.
func (k Cause) Err(rank int, group string, wrapped error) error {
	e := goccl.NewError(k.Op, goccl.ErrAborted)
	for _, x := range kinds {
		if x.name == k.Kind {
			e.Err = x.err
		}
	}
	if wrapped != nil {
		e.Err = wrapped
	}
	e.Rank, e.Peer, e.Seq, e.Missing, e.Group, e.Sentence = rank, k.Peer, k.Seq, k.Missing, group, k.Sentence
	return e
}
