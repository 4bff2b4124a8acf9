//go:build unix

package main

import (
	"os"
	"syscall"
)

// stopping lists the signals that end the job.
func stopping() []os.Signal { return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} }

// passing lists the signals that only the ranks understand.
func passing() []os.Signal { return []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2} }
