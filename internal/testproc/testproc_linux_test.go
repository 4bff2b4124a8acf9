package testproc

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/leak"
)

func TestMain(m *testing.M) {
	Enter(map[string]Rank{"echo": echo, "fail": fail, "accept": accept, "parent": parent})
	os.Exit(leak.Check(m))
}

// echo answers each line with its own rank and the line until it reads "end".
func echo(c *Child) error {
	if err := c.Ready(fmt.Sprintf("%d of %d with %s", c.Rank, c.Size, c.Arg)); err != nil {
		return err
	}
	for {
		line := c.Next()
		if line == "end" {
			return nil
		}
		if err := c.Ready(fmt.Sprintf("%d:%s", c.Rank, line)); err != nil {
			return err
		}
	}
}

func fail(c *Child) error { return fmt.Errorf("rank function %d says no", c.Rank) }

// accept takes one connection from an inherited listener.
func accept(c *Child) error {
	l, err := net.FileListener(c.Files[0])
	if err != nil {
		return err
	}
	defer l.Close()
	conn, err := l.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "hello from rank %d", c.Rank)
	return err
}

// parent starts a rank of its own, says its process id, and waits to be killed.
func parent(c *Child) error {
	p, err := start("echo", 0, 1, Options{})
	if err != nil {
		return err
	}
	if err := c.Ready(<-p.got); err != nil {
		return err
	}
	if err := c.Ready(fmt.Sprint(p.PID())); err != nil {
		return err
	}
	c.Next()
	return errors.New("the test was to kill this process")
}

func TestRanksTalk(t *testing.T) {
	g := Start(t, "echo", 3, Options{Arg: "one two"})
	require.Equal(t, []string{"0 of 3 with one two", "1 of 3 with one two", "2 of 3 with one two"}, g.WaitReady(t))
	for i, p := range g.Procs {
		p.Send(t, fmt.Sprintf("line %d", 10+i))
	}
	require.Equal(t, []string{"0:line 10", "1:line 11", "2:line 12"}, g.WaitReady(t))
	for _, p := range g.Procs {
		p.Send(t, "end")
	}
	g.Wait(t)
}

func TestKillStopContinue(t *testing.T) {
	g := Start(t, "echo", 3, Options{})
	g.WaitReady(t)
	g.Procs[0].Kill(t)
	var exit *exec.ExitError
	require.ErrorAs(t, g.Procs[0].Wait(t), &exit)
	require.Equal(t, syscall.SIGKILL, exit.Sys().(syscall.WaitStatus).Signal())

	g.Procs[1].Stop(t)
	g.Procs[1].Send(t, "while stopped")
	s, err := state(g.Procs[1].PID())
	require.NoError(t, err)
	require.Equal(t, "T", s)
	g.Procs[1].Continue(t)
	require.Equal(t, "1:while stopped", g.Procs[1].Next(t))

	g.Procs[2].Stop(t) // the clean-up must end it although it is stopped
}

func TestFailureHasOutput(t *testing.T) {
	g := Start(t, "fail", 1, Options{})
	var exit *exec.ExitError
	require.ErrorAs(t, g.Procs[0].Wait(t), &exit)
	require.Equal(t, 1, exit.ExitCode())
	require.Equal(t, "rank 0: rank function 0 says no\n", g.Procs[0].Output())
}

func TestUnknownRankFunction(t *testing.T) {
	g := Start(t, "nobody", 1, Options{})
	require.Error(t, g.Procs[0].Wait(t))
	require.Contains(t, g.Procs[0].Output(), `no rank function for "nobody 0 1 0 "`)
}

func TestInheritedListener(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f, err := l.(*net.TCPListener).File()
	require.NoError(t, err)
	g := Start(t, "accept", 1, Options{Files: func(int) []*os.File { return []*os.File{f} }})
	require.NoError(t, f.Close())
	require.NoError(t, l.Close()) // the child's copy still listens
	conn, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	text, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	require.Equal(t, "hello from rank 0", string(text))
	g.Wait(t)
}

// A rank ends when the process that started it is killed.
func TestOrphanEnds(t *testing.T) {
	g := Start(t, "parent", 1, Options{})
	require.True(t, strings.HasPrefix(g.Procs[0].Next(t), "0 of 1"))
	var pid int
	_, err := fmt.Sscan(g.Procs[0].Next(t), &pid)
	require.NoError(t, err)
	orphan := &Proc{cmd: &exec.Cmd{Process: &os.Process{Pid: pid}}}
	g.Procs[0].Kill(t)
	orphan.waitState(t, "ZX")
}
