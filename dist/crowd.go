package dist

import (
	"log/slog"
	"runtime"
	"sync"

	"github.com/goccl/goccl/internal/spin"
)

var crowded sync.Once

// crowd says once in a process that its machine's ranks want more threads than
// there are cores: they take them from each other while they wait. It is a warning
// only where something can be done about it.
func crowd(localSize int, log *slog.Logger) {
	threads := runtime.GOMAXPROCS(0)
	if cores := spin.Cores(); localSize > 1 && localSize*threads > cores {
		crowded.Do(func() {
			if threads > max(1, cores/localSize) {
				log.Warn("the ranks of this machine have more threads than it has cores; set GOMAXPROCS to cores / ranks, as gocclrun does",
					"local_ranks", localSize, "gomaxprocs", threads, "cores", cores)
				return
			}
			log.Info("more ranks than cores: they take turns", "local_ranks", localSize, "cores", cores)
		})
	}
}
