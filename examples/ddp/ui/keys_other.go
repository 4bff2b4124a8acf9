//go:build !linux

package ui

import "os"

// OpenKeys returns ErrNoKeys: single keys are read on Linux only.
func OpenKeys(*os.File) (*Keys, error) { return nil, ErrNoKeys }
