//go:build !unix

package main

import "os"

// stopping lists the signals that end the job.
func stopping() []os.Signal { return []os.Signal{os.Interrupt} }

// passing lists the signals that only the ranks understand: none here.
func passing() []os.Signal { return nil }
