//go:build (amd64 || arm64) && !race

package shmem

import "sync/atomic"

// storeRelease stores v after all earlier writes, without waiting for it.
//
//go:noescape
func storeRelease(w *atomic.Uint64, v uint64)
