package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const cgroupRoot = "/sys/fs/cgroup"

// unifiedCgroups reports whether the machine has only control groups of version 2.
func unifiedCgroups() bool {
	var info unix.Statfs_t
	return unix.Statfs(cgroupRoot, &info) == nil && info.Type == unix.CGROUP2_SUPER_MAGIC
}

// hierarchies returns the roots of all writable control group hierarchies.
func hierarchies() ([]string, error) {
	if unifiedCgroups() {
		return []string{cgroupRoot}, nil
	}
	entries, err := os.ReadDir(cgroupRoot)
	if err != nil {
		return nil, fmt.Errorf("list control groups: %w", err)
	}
	var roots []string
	for _, entry := range entries { // links such as cpu -> cpu,cpuacct are not folders
		root := filepath.Join(cgroupRoot, entry.Name())
		if entry.IsDir() && unix.Access(filepath.Join(root, "cgroup.procs"), unix.W_OK) == nil {
			roots = append(roots, root)
		}
	}
	if len(roots) == 0 {
		return nil, fmt.Errorf("no control groups mounted below %s", cgroupRoot)
	}
	return roots, nil
}

// makeCgroup makes a group in every hierarchy, as the kubelet requires for its root.
func makeCgroup(path string) error {
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	for _, root := range roots {
		parent := root
		for level := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
			child := filepath.Join(parent, level)
			if err := makeCgroupLevel(parent, child); err != nil {
				return fmt.Errorf("make control group %s: %w", child, err)
			}
			parent = child
		}
	}
	return nil
}

func makeCgroupLevel(parent, child string) error {
	if unifiedCgroups() {
		if err := delegateControllers(parent); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(child, 0o755); err != nil {
		return err
	}
	if unifiedCgroups() {
		return nil
	}
	// A new cpuset group of version 1 accepts no process before it has CPUs and memory.
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(parent, file))
		if errors.Is(err, fs.ErrNotExist) {
			continue // another hierarchy
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(child, file), value, 0); err != nil {
			return err
		}
	}
	return nil
}

// delegateControllers enables the controllers of a version 2 group for its children. Such a group must have no
// processes. Only the root of a container's cgroup namespace has some, because all processes of the container start
// there: they are moved to a child group.
func delegateControllers(group string) error {
	available, err := os.ReadFile(filepath.Join(group, "cgroup.controllers"))
	if err != nil {
		return err
	}
	subtree := filepath.Join(group, "cgroup.subtree_control")
	enabled, err := os.ReadFile(subtree)
	if err != nil {
		return err
	}
	var missing []string
	for controller := range strings.FieldsSeq(string(available)) {
		if !slices.Contains(strings.Fields(string(enabled)), controller) {
			missing = append(missing, "+"+controller)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	change := []byte(strings.Join(missing, " "))
	err = os.WriteFile(subtree, change, 0)
	if errors.Is(err, unix.EBUSY) {
		if err := moveProcesses(group, filepath.Join(group, "init")); err != nil {
			return err
		}
		err = os.WriteFile(subtree, change, 0)
	}
	return err
}

func moveProcesses(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	pids, err := os.ReadFile(filepath.Join(from, "cgroup.procs"))
	if err != nil {
		return err
	}
	for pid := range strings.FieldsSeq(string(pids)) {
		err := os.WriteFile(filepath.Join(to, "cgroup.procs"), []byte(pid), 0)
		if err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.EINVAL) { // ended, or a kernel thread
			return fmt.Errorf("move process %s to control group %s: %w", pid, to, err)
		}
	}
	return nil
}

// removeCgroup removes a group and all below it from every hierarchy. Its processes have been killed, but the kernel
// may take some time to remove them.
func removeCgroup(path string) error {
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	var failures []error
	for _, root := range roots {
		err := removeCgroupTree(filepath.Join(root, path))
		for attempt := 0; errors.Is(err, unix.EBUSY) && attempt < 60; attempt++ {
			time.Sleep(probeInterval)
			err = removeCgroupTree(filepath.Join(root, path))
		}
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

func removeCgroupTree(group string) error {
	entries, err := os.ReadDir(group)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := removeCgroupTree(filepath.Join(group, entry.Name())); err != nil {
				return err
			}
		}
	}
	if err := unix.Rmdir(group); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("remove control group %s: %w", group, err)
	}
	return nil
}
