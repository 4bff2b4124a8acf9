package testproc

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// Options says how ranks are started. The zero value is good.
type Options struct {
	Arg string   // Child.Arg of every rank; no newline
	Env []string // KEY=VALUE entries beside the test's own environment
	// Files returns what a rank inherits as Child.Files, for example a listener
	// that is open already. The caller closes its own copies.
	Files func(rank int) []*os.File
}

// Group is a set of rank processes.
type Group struct{ Procs []*Proc }

// Start starts size processes of the rank function called name. When t ends, all
// that still run are killed and waited for, also stopped ones. They end when the
// test process dies, too.
func Start(t testing.TB, name string, size int, o Options) *Group {
	t.Helper()
	g := &Group{}
	t.Cleanup(func() { g.end(t) })
	for rank := range size {
		p, err := start(name, rank, size, o)
		if err != nil {
			t.Fatalf("testproc: rank %d: %v", rank, err)
		}
		g.Procs = append(g.Procs, p)
	}
	return g
}

// WaitReady blocks until every rank has sent a line and returns the lines by
// rank.
func (g *Group) WaitReady(t testing.TB) []string {
	t.Helper()
	lines := make([]string, len(g.Procs))
	for i, p := range g.Procs {
		lines[i] = p.Next(t)
	}
	return lines
}

// Wait blocks until every rank has ended and fails t unless all succeeded.
func (g *Group) Wait(t testing.TB) {
	t.Helper()
	for _, p := range g.Procs {
		if err := p.Wait(t); err != nil {
			t.Errorf("testproc: rank %d: %v:\n%s", p.Rank, err, p.Output())
		}
	}
}

func (g *Group) end(t testing.TB) {
	for _, p := range g.Procs {
		select {
		case <-p.done:
		default: // not reaped, so the number is still its group's
			_ = syscall.Kill(-p.PID(), syscall.SIGKILL) // gone already is as good
		}
	}
	for _, p := range g.Procs {
		_ = p.Wait(t) // most were killed
		close(p.quit)
		<-p.read
		_ = p.lines.Close()
	}
}

func start(name string, rank, size int, o Options) (*Proc, error) {
	var files []*os.File
	if o.Files != nil {
		files = o.Files(rank)
	}
	readyR, readyW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer readyW.Close()
	linesR, linesW, err := os.Pipe()
	if err != nil {
		readyR.Close()
		return nil, err
	}
	defer linesR.Close()

	p := &Proc{Rank: rank, lines: linesW, got: make(chan string),
		quit: make(chan struct{}), read: make(chan struct{}), done: make(chan struct{})}
	p.cmd = exec.Command(os.Args[0])
	p.cmd.WaitDelay = outputDelay
	p.cmd.Env = append(append(os.Environ(), o.Env...),
		fmt.Sprintf("%s=%s %d %d %d %s", variable, name, rank, size, len(files), o.Arg))
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	p.cmd.ExtraFiles = append([]*os.File{readyW, linesR}, files...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		readyR.Close()
		linesW.Close()
		return nil, err
	}
	go p.follow(readyR)
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// outputDelay is how long after its end a process's output is still read when a
// process that it started holds the pipe open.
const outputDelay = 5 * time.Second

// follow passes the child's lines on until it has ended or nobody listens.
func (p *Proc) follow(ready *os.File) {
	defer close(p.read)
	defer close(p.got)
	defer ready.Close()
	for r := bufio.NewScanner(ready); r.Scan(); {
		select {
		case p.got <- r.Text():
		case <-p.quit:
			return
		}
	}
}
