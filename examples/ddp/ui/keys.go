package ui

import (
	"errors"
	"os"
	"sync"
)

// ErrNoKeys says that single keys cannot be read: the input is not a terminal, the
// program runs in the background, or the platform is not supported.
var ErrNoKeys = errors.New("ui: no keys from this input")

// Keys reads single keys from a terminal, without waiting for the end of a line and
// without echo. Ctrl-C stays a signal, and output is not affected. That is less than
// the raw mode of golang.org/x/term, which would turn both off.
type Keys struct {
	c       chan byte
	wake    *os.File // closing it ends the reader
	restore func() error
	done    sync.WaitGroup
	close   sync.Once
	err     error
}

// C delivers the keys pressed. It is closed when no more can come: after Close, at
// the end of the input, or when reading fails. Keys that nobody takes are dropped.
func (k *Keys) C() <-chan byte { return k.c }

// Close ends the reader, waits for it, and puts the terminal back as it was.
func (k *Keys) Close() error {
	k.close.Do(func() {
		wakeErr := k.wake.Close()
		k.done.Wait()
		k.err = errors.Join(wakeErr, k.restore())
	})
	return k.err
}
