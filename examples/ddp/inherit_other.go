//go:build !unix

package main

import "os"

// inheritNotice returns nil: processes inherit no files here.
func inheritNotice(int, int) (*os.File, error) { return nil, nil }
