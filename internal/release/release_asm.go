//go:build (amd64 || arm64) && !race

package release

import "sync/atomic"

// Store stores v in w after all earlier writes, without waiting for it.
//
//go:noescape
func Store(w *atomic.Uint64, v uint64)
