package main

import (
	"context"
	"log/slog"
	"strings"
)

// calm leaves out what is no news here: that there are more ranks than cores, which
// the report says; that a rank has waited half a second for another, which happens
// when ranks take turns; and failures, which end the run with a sentence of their
// own. That a rank is stopped is news. With GOCCL_DEBUG=INFO or more everything is
// shown.
type calm struct{ slog.Handler }

// Handle implements slog.Handler.
func (c calm) Handle(ctx context.Context, r slog.Record) error {
	dull := false
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "local_ranks", "err":
			dull = true
		case "waiting":
			dull = !strings.Contains(a.Value.String(), "stopped")
		}
		return !dull
	})
	if dull && !c.Enabled(ctx, slog.LevelInfo) {
		return nil
	}
	return c.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (c calm) WithAttrs(attrs []slog.Attr) slog.Handler { return calm{c.Handler.WithAttrs(attrs)} }

// WithGroup implements slog.Handler.
func (c calm) WithGroup(name string) slog.Handler { return calm{c.Handler.WithGroup(name)} }
