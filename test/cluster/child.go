package cluster

import (
	"context"
	"os"
	"os/exec"
	"runtime"
)

// runChild executes a process once as a plain child.
func runChild(ctx context.Context, p Process, log *os.File) error {
	runtime.LockOSThread() // see childAttributes
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, p.Path, p.Args...)
	cmd.Env = append(os.Environ(), p.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = childAttributes()
	return cmd.Run()
}
