package dist

import (
	"log/slog"
	"runtime"
	"sync"

	"github.com/goccl/goccl/internal/spin"
)

var crowded sync.Once

// crowd warns once in a process whose ranks want more threads than there are
// cores: they take them from each other while they wait.
func crowd(localSize int, log *slog.Logger) {
	threads := runtime.GOMAXPROCS(0)
	if cores := spin.Cores(); localSize > 1 && localSize*threads > cores {
		crowded.Do(func() {
			log.Warn("the ranks of this machine have more threads than it has cores; set GOMAXPROCS to cores / ranks, as gocclrun does",
				"local_ranks", localSize, "gomaxprocs", threads, "cores", cores)
		})
	}
}
