package dist

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"sync"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/trace"
)

// watch writes the flight recorders of a job on a signal and after a timeout.
type watch struct {
	signals chan os.Signal
	stop    chan struct{}
	ended   sync.WaitGroup
}

// start begins to watch if the configuration says so.
func (w *watch) start(j *Job) {
	if !j.cfg.Diagnose {
		return
	}
	w.signals, w.stop = make(chan os.Signal, 1), make(chan struct{})
	if len(dumpSignals) > 0 {
		signal.Notify(w.signals, dumpSignals...)
	}
	w.ended.Go(func() { w.run(j) })
}

func (w *watch) run(j *Job) {
	failed := j.world.Context().Done()
	for {
		select {
		case s := <-w.signals:
			j.dump("signal: " + s.String())
		case <-failed:
			failed = nil
			cause := context.Cause(j.world.Context())
			if j.cfg.DumpDir == "" && errors.Is(cause, goccl.ErrTimeout) {
				j.dump(cause.Error())
			}
		case <-w.stop:
			if failed != nil && j.cfg.DumpDir == "" && errors.Is(j.world.Err(), goccl.ErrTimeout) {
				j.dump(j.world.Err().Error())
			}
			return
		}
	}
}

// end stops watching and waits for a dump that is under way.
func (w *watch) end() {
	if w.stop == nil {
		return
	}
	signal.Stop(w.signals)
	close(w.stop)
	w.ended.Wait()
}

// dump writes the flight recorder of every group.
func (j *Job) dump(why string) {
	dir := j.cfg.DumpDir
	if dir == "" {
		dir = "."
	}
	j.mu.Lock()
	groups := slices.Clone(j.groups)
	j.mu.Unlock()
	for _, g := range groups {
		path, err := trace.Save(dir, g.Dump(why))
		if err != nil {
			j.cfg.Logger.Error("flight recorder not written", "group", g.Name(), "rank", j.Rank(), "err", err)
			continue
		}
		j.cfg.Logger.Warn("flight recorder written", "group", g.Name(), "rank", j.Rank(), "path", path, "why", why)
	}
}
