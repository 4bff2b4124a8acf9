package shm

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/goccl/goccl"
)

// watch follows the processes of peers, one goroutine each, until it is closed.
type watch struct {
	mu     sync.Mutex
	wait   sync.WaitGroup
	stop   context.CancelFunc
	ctx    context.Context
	closed bool
	peers  map[int]*process
}

// process is a peer's process.
type process struct {
	pid   int
	start uint64
	ended atomic.Bool
}

// alive reports that the process has ended.
func (p *process) alive() error {
	if p.ended.Load() {
		return lost(p.pid)
	}
	return nil
}

// follow returns the function that reports the end of the process. announced is
// what its transport announced; it tells a later process of the same pid.
func (w *watch) follow(pid int, announced []byte) (func() error, error) {
	start, err := decodeStart(announced)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, goccl.ErrClosed
	}
	if p := w.peers[pid]; p != nil && p.start == start {
		return p.alive, nil
	}
	if w.peers == nil {
		w.peers = map[int]*process{}
		w.ctx, w.stop = context.WithCancel(context.Background())
	}
	p := &process{pid: pid, start: start}
	// The handle first, then the question whether it is the right process: a pid
	// cannot be given away while the handle's process is there.
	end := openProcess(pid)
	if now, err := startTime(pid); err != nil || now != start {
		end.close()
		return nil, lost(pid)
	}
	w.peers[pid] = p
	ctx := w.ctx
	w.wait.Go(func() {
		defer end.close()
		if end.wait(ctx, p) {
			p.ended.Store(true)
		}
	})
	return p.alive, nil
}

// close stops the goroutines and waits for them.
func (w *watch) close() error {
	w.mu.Lock()
	w.closed = true
	if w.stop != nil {
		w.stop()
	}
	w.mu.Unlock()
	w.wait.Wait()
	return nil
}
