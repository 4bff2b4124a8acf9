package launch

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// isolate puts the rank into a process group of its own, so that it can be
// killed with all it started, and has it killed when the launcher dies.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// collect returns when the rank has ended and its output has been read. The
// rank's group is killed before the rank is collected, because until then
// neither its id nor its group's can be given to others.
func (p *process) collect() {
	for {
		if err := unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != unix.EINTR {
			break
		}
	}
	p.bury()
	_ = p.cmd.Wait() // the process state says it all
}
