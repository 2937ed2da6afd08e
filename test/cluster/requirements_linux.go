package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// checkRequirements returns everything that prevents real nodes on this machine.
func checkRequirements(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return errors.New("real nodes need root")
	}
	var missing []error
	for _, tool := range []string{"mount", "umount"} { // the kubelet calls them
		if _, err := exec.LookPath(tool); err != nil {
			missing = append(missing, fmt.Errorf("the program %s is missing", tool))
		}
	}
	if err := tryNamespaces(ctx); err != nil {
		missing = append(missing, fmt.Errorf("namespaces cannot be made here (a container needs to be privileged): %w", err))
	}
	if _, err := hierarchies(); err != nil {
		missing = append(missing, err)
	}
	return errors.Join(missing...)
}

// tryNamespaces runs a harmless program in namespaces of its own.
func tryNamespaces(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "mount", "--version")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: machineNamespaces}
	return cmd.Run()
}

// chooseSnapshotter returns how image layers are stored: an overlay cannot be on top of another one, which the file
// system of a container often is.
func chooseSnapshotter(folder string) string {
	var info unix.Statfs_t
	if unix.Statfs(folder, &info) == nil && info.Type == unix.OVERLAYFS_SUPER_MAGIC {
		return "native"
	}
	return "overlayfs"
}
