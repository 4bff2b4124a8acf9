//go:build (!amd64 && !arm64) || race

package shmem

import "sync/atomic"

// storeRelease is an atomic store here, which also orders later loads; the race
// detector knows it.
func storeRelease(w *atomic.Uint64, v uint64) { w.Store(v) }
