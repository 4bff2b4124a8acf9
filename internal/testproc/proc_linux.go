package testproc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// watchdog bounds every wait. It is far above what a loaded machine needs, and
// only a test that fails meets it.
const watchdog = 60 * time.Second

// Proc is a rank process seen from the test. Its methods fail the test when
// something goes wrong, and are called from the test's goroutine.
type Proc struct {
	Rank int

	cmd    *exec.Cmd
	lines  *os.File      // to the child
	got    chan string   // from the child; closed when it has ended
	quit   chan struct{} // closed when nobody reads got any more
	read   chan struct{} // closed when the reader of the child's lines has ended
	done   chan struct{} // closed when the process has ended and err is set
	err    error
	output lockedBuffer
}

// lockedBuffer collects what a process prints while the test may read it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// PID returns the process id.
func (p *Proc) PID() int { return p.cmd.Process.Pid }

// Output returns what the process has printed so far, both streams together.
func (p *Proc) Output() string { return p.output.String() }

// Next blocks until the process sends its next line with Child.Ready.
func (p *Proc) Next(t testing.TB) string {
	t.Helper()
	select {
	case line, ok := <-p.got:
		if !ok {
			t.Fatalf("testproc: rank %d ended before it was ready (%v):\n%s", p.Rank, p.Wait(t), p.Output())
		}
		return line
	case <-time.After(watchdog):
		t.Fatalf("testproc: rank %d is not ready after %v:\n%s", p.Rank, watchdog, p.Output())
	}
	return ""
}

// Send gives the process a line for Child.Next.
func (p *Proc) Send(t testing.TB, line string) {
	t.Helper()
	if _, err := p.lines.WriteString(line + "\n"); err != nil {
		t.Fatalf("testproc: rank %d: %v:\n%s", p.Rank, err, p.Output())
	}
}

// Kill ends the process with SIGKILL and waits until it is gone.
func (p *Proc) Kill(t testing.TB) {
	t.Helper()
	p.Signal(t, syscall.SIGKILL)
	_ = p.Wait(t) // it reports the signal, which is what was asked for
}

// Stop stops the process with SIGSTOP and waits until the kernel says so.
func (p *Proc) Stop(t testing.TB) {
	t.Helper()
	p.Signal(t, syscall.SIGSTOP)
	p.waitState(t, "T")
}

// Continue lets a stopped process go on and waits until it is no longer stopped.
func (p *Proc) Continue(t testing.TB) {
	t.Helper()
	p.Signal(t, syscall.SIGCONT)
	p.waitState(t, "RSDZX")
}

// Signal sends a signal.
func (p *Proc) Signal(t testing.TB, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatalf("testproc: rank %d: %v", p.Rank, err)
	}
}

// Wait blocks until the process has ended and returns nil or an *exec.ExitError.
func (p *Proc) Wait(t testing.TB) error {
	t.Helper()
	select {
	case <-p.done:
		return p.err
	case <-time.After(watchdog):
		t.Fatalf("testproc: rank %d has not ended after %v:\n%s", p.Rank, watchdog, p.Output())
		return nil
	}
}

// Done is closed when the process has ended.
func (p *Proc) Done() <-chan struct{} { return p.done }

// waitState looks at the process until its state is one of the letters of want.
func (p *Proc) waitState(t testing.TB, want string) {
	t.Helper()
	for end := time.Now().Add(watchdog); ; time.Sleep(time.Millisecond) {
		s, err := state(p.PID())
		if err != nil {
			t.Fatalf("testproc: rank %d: %v:\n%s", p.Rank, err, p.Output())
		}
		if strings.Contains(want, s) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("testproc: rank %d is in state %s, not in %s, after %v", p.Rank, s, want, watchdog)
		}
	}
}

// state returns the state letter of a process as in proc(5), X when it is gone.
func state(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, os.ErrNotExist) {
		return "X", nil
	}
	if err != nil {
		return "", err
	}
	// The name in parentheses may hold anything, so count from its end.
	_, rest, ok := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " ")
	if !ok || rest == "" {
		return "", fmt.Errorf("no state in %q", stat)
	}
	return rest[:1], nil
}
