package processgroup

import "time"

// NewQuiet returns a group whose watchdog ticks only when Tick is called, at the
// time that the test says.
func NewQuiet(cfg Config) *Group {
	g := New(cfg)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.watch.armed = true // so that no call wakes it
	return g
}

// Tick lets the watchdog of a quiet group look around as if the time were ahead.
func Tick(g *Group, ahead time.Duration) bool {
	return g.watch.tick(g.core, g.now()+int64(ahead))
}

// FreeOps returns how many Ops wait to be used again.
func FreeOps(g *Group) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := 0
	for op := g.free; op != nil; op = op.life.next {
		n++
	}
	return n
}

// SetTick changes how often the watchdog looks around. Before the first operation.
func SetTick(g *Group, every time.Duration) { g.watch.every = every }

// Armed reports whether the watchdog ticks.
func Armed(g *Group) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.watch.armed
}
