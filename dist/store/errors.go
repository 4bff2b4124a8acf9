package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/goccl/goccl"
)

// waitHint is what a reader of a Get that timed out should look at.
const waitHint = "no one has set this key: the rank that should is late or gone"

// opError names the operation, the key and the store of a failed call.
func opError(op, key, where string, err error) error {
	const shown = 120 // bytes of a key in a message
	if len(key) > shown {
		key = key[:shown] + "..."
	}
	e := goccl.NewError(fmt.Sprintf("store %s %q", op, key), err)
	e.Transport = where
	return e
}

// getError is opError for a Get; one that ran out of time carries a hint.
func getError(key, where string, err error) error {
	err = opError("get", key, where, err)
	var e *goccl.Error
	if errors.Is(err, goccl.ErrTimeout) && errors.As(err, &e) {
		e.Hint = waitHint
	}
	return err
}

// ended turns the end of ctx into an error that matches both the sentinel and
// the context's cause.
func ended(ctx context.Context) error {
	kind := goccl.ErrAborted
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		kind = goccl.ErrTimeout
	}
	return fmt.Errorf("%w: %w", kind, context.Cause(ctx))
}
