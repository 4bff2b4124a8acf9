package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/goccl/goccl"
)

// errStopped ends a rank that was told to stop.
var errStopped = errors.New("stopped by a signal")

// patience is how long a rank that is told to end by SIGTERM, or whose peer is
// gone, waits to hear why.
const patience = 1500 * time.Millisecond

// ending is how a rank process learns that it must end, and why.
type ending struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	signals chan os.Signal
	watcher sync.WaitGroup
	notice  *os.File // nil: there is no parent to write one
}

// watchEnding begins to listen for signals.
//
// A launcher sends SIGTERM when another rank has failed. The library finds that out
// too, and knows better who it was, so that this signal only counts when nothing
// else comes. Ctrl-C arrives as SIGINT and counts at once.
func watchEnding(notice *os.File) *ending {
	e := &ending{signals: make(chan os.Signal, 4), notice: notice}
	e.ctx, e.cancel = context.WithCancelCause(context.Background())
	signal.Notify(e.signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	e.watcher.Go(func() {
		var over <-chan time.Time
		for {
			select {
			case sig := <-e.signals:
				if sig != syscall.SIGTERM {
					e.cancel(errStopped)
				} else if over == nil {
					over = time.After(patience)
				}
			case <-over:
				e.cancel(errStopped)
			case <-e.ctx.Done():
				return
			}
		}
	})
	return e
}

// stopped reports whether the rank was told to end.
func (e *ending) stopped() bool { return errors.Is(context.Cause(e.ctx), errStopped) }

// close ends the listening.
func (e *ending) close() {
	signal.Stop(e.signals)
	e.cancel(nil)
	e.watcher.Wait()
	if e.notice != nil {
		e.notice.Close()
	}
}

// sentence is what the rank says of err: the library's first line, which is the
// same on all ranks, and the signal that killed the guilty rank if there is a
// parent that knows it.
func (e *ending) sentence(err error) string {
	first, _, _ := strings.Cut(err.Error(), "\n")
	if !errors.Is(err, goccl.ErrPeerLost) {
		return err.Error()
	}
	rank, fate, ok := e.readNotice()
	if !ok {
		return first
	}
	if who, _, found := strings.Cut(first, " is gone"); found && strings.HasPrefix(who, fmt.Sprintf("goccl: rank %d (", rank)) {
		return who + " " + fate
	}
	return fmt.Sprintf("goccl: rank %d %s", rank, fate)
}

// readNotice waits for the parent's notice, with patience.
func (e *ending) readNotice() (rank int, fate string, ok bool) {
	if e.notice == nil || e.notice.SetReadDeadline(time.Now().Add(patience)) != nil {
		return 0, "", false
	}
	line := make([]byte, 256)
	n, err := e.notice.Read(line)
	if err != nil {
		return 0, "", false
	}
	number, fate, _ := strings.Cut(strings.TrimSpace(string(line[:n])), " ")
	if _, err := fmt.Sscan(number, &rank); err != nil {
		return 0, "", false
	}
	return rank, fate, true
}
