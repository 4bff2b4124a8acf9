package ui

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// Bar is a Display for a terminal: a progress bar with a line per rank under it,
// drawn anew several times a second.
type Bar struct {
	progress *mpb.Progress
	bar      *mpb.Bar
	status   atomic.Pointer[Status]
	close    sync.Once
}

var _ Display = (*Bar)(nil)

// barWidth is the width of the bar itself, in columns. It leaves room for the loss
// in a terminal of 80.
const barWidth = 24

// NewBar draws to out, which must be a terminal.
func NewBar(out io.Writer, p Plan) *Bar {
	return newBar(p, mpb.WithOutput(out), mpb.WithWidth(barWidth))
}

func newBar(p Plan, options ...mpb.ContainerOption) *Bar {
	b := &Bar{}
	b.status.Store(&Status{Epoch: 1})
	b.progress = mpb.New(options...)
	rows := make([]mpb.BarFiller, p.Ranks)
	for rank := range rows {
		rows[rank] = b.rankRow(rank)
	}
	b.bar = b.progress.AddBar(int64(p.Steps),
		mpb.PrependDecorators(decor.Any(func(decor.Statistics) string {
			return fmt.Sprintf("%-8s epoch %d/%d ", p.Title, b.status.Load().Epoch, p.Epochs)
		})),
		mpb.AppendDecorators(
			decor.CountersNoUnit(" %d/%d"),
			decor.Any(func(decor.Statistics) string { return "  " + summary(*b.status.Load()) }),
		),
		mpb.BarBtmExtender(rows...),
	)
	return b
}

// rankRow draws the line of rank, nothing before its first status. The library
// counts rows to know how far up the next drawing begins: one line for each filler.
func (b *Bar) rankRow(rank int) mpb.BarFillerFunc {
	return func(w io.Writer, _ decor.Statistics) error {
		ranks := b.status.Load().Ranks
		if rank >= len(ranks) {
			return nil
		}
		_, err := fmt.Fprintf(w, "  %s\n", rankLine(rank, ranks[rank]))
		return err
	}
}

// Update shows s with the next refresh.
func (b *Bar) Update(s Status) {
	b.status.Store(&s)
	b.bar.SetCurrent(int64(s.Step))
}

// Note shows line above the bar.
func (b *Bar) Note(line string) {
	// After Close the bar takes no lines, which is as documented.
	_, _ = b.progress.Write([]byte(line + "\n"))
}

// Close draws the last state and waits until it is written. A bar that is not full
// stays as it is.
func (b *Bar) Close() {
	b.close.Do(func() {
		b.bar.Abort(false) // no effect on a full bar
		b.progress.Wait()
	})
}
