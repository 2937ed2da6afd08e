package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

const machineNamespaces = unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// startMachine starts a machine's init in new namespaces, calls connect to set up its network, and sends the machine to
// it.
func startMachine(ctx context.Context, l layout, m machine, connect func(pid int) error) (*runningMachine, error) {
	logFile, err := os.OpenFile(l.log(m.Name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer func() { _ = logFile.Close() }()
	cmd := exec.CommandContext(context.WithoutCancel(ctx), l.command(), roleMachine, m.Name)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = logFile, logFile
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: machineNamespaces,
		Setsid:     true,
		Pdeathsig:  unix.SIGKILL,
	}
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	done, err := startOnOwnThread(cmd)
	if err != nil {
		return nil, err
	}
	running := &runningMachine{
		pid:  cmd.Process.Pid,
		kill: cmd.Process.Kill,
		done: done,
	}
	if err := connect(running.pid); err != nil {
		_ = running.kill()
		<-done
		return nil, err
	}
	if err := hand(input, m); err != nil {
		_ = running.kill()
		<-done
		return nil, fmt.Errorf("hand over the machine: %w", err)
	}
	return running, nil
}

func hand(input io.WriteCloser, m machine) error {
	if err := json.NewEncoder(input).Encode(m); err != nil {
		return err
	}
	return input.Close()
}

// startOnOwnThread starts a command and closes done when it has ended. The kernel sends the death signal when the
// thread that started the child ends, not the process: the thread must live as long as the child.
func startOnOwnThread(cmd *exec.Cmd) (done chan struct{}, err error) {
	done = make(chan struct{})
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is in its log
			close(done)
		}
	}()
	return done, <-started
}

// childAttributes returns attributes with which a plain child ends with the supervisor. The caller must stay on one
// thread.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
}
