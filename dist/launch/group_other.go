//go:build !unix

package launch

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// This system has no process groups and no inherited descriptors: the port of
// the rendezvous is free for a moment before rank 0 opens it.
const canInherit = false

// isolate does nothing here.
func isolate(*exec.Cmd) {}

// collect returns when the rank has ended and its output has been read.
func (p *process) collect() {
	_ = p.cmd.Wait() // the process state says it all
	p.bury()
}

// signalGroup kills the process: the only signal there is.
func signalGroup(p *os.Process, sig os.Signal) error {
	if sig == syscall.SIGKILL || sig == syscall.SIGTERM || sig == os.Interrupt {
		return p.Kill()
	}
	return errors.ErrUnsupported
}

// killGroup has no group to kill: the process has ended.
func killGroup(*os.Process) {}

// resume has no stopped processes to continue.
func resume(*process) {}

// exitSignal knows no signals here.
func exitSignal(*os.ProcessState) os.Signal { return nil }

func listeningAddr(int) (string, error) { return "", errors.ErrUnsupported }
