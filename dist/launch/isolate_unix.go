//go:build unix && !linux

package launch

import (
	"os/exec"
	"syscall"
)

// isolate puts the rank into a process group of its own, so that it can be
// killed with all it started. This system does not kill it with the launcher.
func isolate(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// collect returns when the rank has ended and its output has been read.
func (p *process) collect() {
	_ = p.cmd.Wait() // the process state says it all
	p.bury()
}
