package spin

import (
	"runtime"
	"sync"
)

// Cores returns how many threads of this process can run at once: the cores of
// its affinity mask, or fewer where a control group's CPU quota allows fewer.
// GOMAXPROCS does not count, since a launcher sets it to a rank's share. At least
// 1. The answer is found once.
func Cores() int { return cores() }

var cores = sync.OnceValue(func() int {
	return max(1, min(runtime.NumCPU(), quota()))
})
