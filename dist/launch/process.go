package launch

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"
)

// pipeWait bounds the wait for the rest of a rank's output after its group is
// dead: a descendant that left the group may hold the pipes for ever.
const pipeWait = time.Second

// process is one rank.
type process struct {
	rank     int
	cmd      *exec.Cmd
	tail     tail
	out, err *lines

	mu   sync.Mutex
	dead bool // from here on its pid may belong to someone else
}

// exit is the end of one rank.
type exit struct {
	p     *process
	state *os.ProcessState
}

// wait returns when the rank has ended, its group is dead and its output is
// written.
func (p *process) wait() exit {
	p.collect()
	p.out.end()
	p.err.end()
	return exit{p, p.cmd.ProcessState}
}

// bury kills what the rank started and left behind, and lets no later signal go
// to a pid that may be someone else's.
func (p *process) bury() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
	killGroup(p.cmd.Process)
}

// signal sends sig to the rank and all it started.
func (p *process) signal(sig os.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return os.ErrProcessDone
	}
	return signalGroup(p.cmd.Process, sig)
}

// failure returns what the end of the rank means, nil for a good one.
func (e exit) failure() *ExitError {
	f := &ExitError{Rank: e.p.rank, PID: e.p.cmd.Process.Pid, Code: e.state.ExitCode(), Signal: exitSignal(e.state), Tail: e.p.tail.String()}
	if f.Signal == nil && f.Code == 0 {
		return nil
	}
	return f
}

// launch starts process p.
func (p *process) launch() error {
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.err
	p.cmd.WaitDelay = pipeWait
	isolate(p.cmd)
	if err := p.cmd.Start(); err != nil {
		var path *os.PathError
		if errors.As(err, &path) {
			err = fmt.Errorf("%s: %w", path.Path, path.Err)
		}
		return fmt.Errorf("goccl: launch: rank %d: %w", p.rank, err)
	}
	return nil
}
