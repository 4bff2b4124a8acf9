package autotune

import (
	"context"
	"log/slog"
	"sync"

	"github.com/goccl/goccl/comm"
)

// LevelTuning is the level of the lines that explain choices: GOCCL_DEBUG=TRACE.
const LevelTuning = slog.LevelDebug - 4

// Explained returns t with its choices explained in log: once for each collective,
// size class and kind of memory, all candidates with their predicted times. It is
// t itself when the log does not take such lines.
func Explained(t *Tuner, log *slog.Logger) comm.Tuner {
	if log == nil || !log.Enabled(context.Background(), LevelTuning) {
		return t
	}
	return &explained{Tuner: t, log: log}
}

type explained struct {
	*Tuner
	log  *slog.Logger
	said sync.Map // of places
}

var _ comm.Tuner = (*explained)(nil)

// Choose implements comm.Tuner.
func (e *explained) Choose(r comm.Request) (comm.Decision, error) {
	d, err := e.Tuner.Choose(r)
	if err != nil {
		return d, err
	}
	q := QueryOf(r)
	at := placeOf(&q)
	if _, again := e.said.LoadOrStore(at, true); again {
		return d, nil
	}
	all := e.Explain(r)
	lines := make([]string, len(all))
	for i, c := range all {
		lines[i] = c.String()
	}
	e.log.Log(context.Background(), LevelTuning, "TUNING", "collective", r.Coll.String(), "bytes", r.Bytes, "ranks", r.Ranks, "class", at.class.String(),
		"window", r.Window, "chosen", lines[0], "others", lines[1:])
	return d, nil
}
