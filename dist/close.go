package dist

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// farewell is how long rank 0 of a job that failed goes on serving, so that the
// others learn the cause from it.
const farewell = 2 * time.Second

// Close leaves the job: it closes the groups that are left and, on rank 0, serves
// the others until they have left too, at most for Config.Timeout, or 2 seconds
// when the job has failed. A rank that still needs this one in an operation fails
// and names it. Close is idempotent; every rank calls it.
func (j *Job) Close() error {
	j.closing.Do(func() { j.closed = j.close() })
	return j.closed
}

func (j *Job) close() error {
	j.watch.end()
	failed := j.world.Err() != nil
	var errs []error
	j.mu.Lock()
	j.over = true // no group and no rendezvous is added from now on
	groups := slices.Clone(j.groups)
	j.mu.Unlock()
	for _, g := range slices.Backward(groups) {
		failed = failed || g.Err() != nil
		errs = append(errs, g.Close())
	}
	patience := j.cfg.Timeout
	if failed {
		patience = min(patience, farewell)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	errs = append(errs, j.signOut(ctx))
	err := errors.Join(append(errs, j.leave(ctx))...)
	if err != nil && failed {
		// What the cause has brought down is no news.
		j.cfg.Logger.Info("closed after a failure", "rank", j.Rank(), "err", err)
		return nil
	}
	return err
}

// signOut gives the rank back, for a job that uses the same store later.
func (j *Job) signOut(ctx context.Context) error {
	if j.cfg.Store == nil {
		return nil
	}
	_, err := j.store.Delete(ctx, fmt.Sprintf("who/%d", j.Rank()))
	return err
}

// leave ends the rendezvous and the store when the others have left, or when ctx
// ends.
func (j *Job) leave(ctx context.Context) error {
	j.mu.Lock()
	j.over = true
	roots := slices.Clone(j.roots)
	j.mu.Unlock()
	served := make(chan struct{})
	go func() {
		j.serves.Wait()
		close(served)
	}()
	select {
	case <-served:
	case <-ctx.Done():
	}
	var errs []error
	for _, r := range roots {
		errs = append(errs, r.Close())
	}
	<-served
	return errors.Join(append(errs, j.end(ctx))...)
}

// abandon gives up a job that could not be joined.
func (j *Job) abandon() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := j.leave(ctx); err != nil {
		j.cfg.Logger.Info("left a job that did not form", "rank", j.Rank(), "err", err)
	}
}

// closeQuietly ends a job whose failure is reported elsewhere.
func (j *Job) closeQuietly() {
	if err := j.Close(); err != nil {
		j.cfg.Logger.Info("closed after a failure", "rank", j.Rank(), "err", err)
	}
}
