//go:build (!amd64 && !arm64) || race

package release

import "sync/atomic"

// Store is an atomic store here, which also orders later loads; the race detector
// knows it.
func Store(w *atomic.Uint64, v uint64) { w.Store(v) }
