package bucket

import (
	"errors"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/process_group"
)

// agreedError is an error that every rank has found by itself, from the same
// data: nobody needs to be told, and the group stays usable.
type agreedError struct{ error }

func (e agreedError) Unwrap() error { return e.error }

// error gives err the form of the library. What comes from the group is in it
// already and begins with the root cause, which is left in first place.
func (r *Reducer) error(name string, err error) error {
	var known *goccl.Error
	var failure *processgroup.Failure
	if err == nil || errors.As(err, &failure) || errors.As(err, &known) {
		return err
	}
	e := goccl.NewError(name, err)
	e.Group, e.Rank = r.g.Name(), r.g.Rank()
	return e
}

// fail ends the reducer with err and tells the other ranks, which may be waiting
// for buckets that will not come. The first failure is the one that is told.
func (r *Reducer) fail(name string, err error) error {
	err = r.error(name, err)
	var agreed agreedError
	if errors.As(err, &agreed) {
		return err
	}
	r.closing.failed.Do(func() {
		if r.e != nil {
			r.e.fail(err)
		}
		r.g.Fail(err)
	})
	return err
}
