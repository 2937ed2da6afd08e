package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Kill ends a process of a machine with SIGKILL, by a name such as etcd or n1-kubelet. The machine starts it again.
func (c *Cluster) Kill(ctx context.Context, process string) error {
	pid, err := c.find(ctx, process)
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		return fmt.Errorf("kill %s: %w", process, err)
	}
	return nil
}

// find returns the process ID of a process by its name: that of the child of its machine's init with its program.
func (c *Cluster) find(ctx context.Context, process string) (int, error) {
	m, p, err := c.state.process(process)
	if err != nil {
		return 0, err
	}
	status, err := c.Status(ctx)
	if err != nil {
		return 0, err
	}
	tasks, err := listTasks()
	if err != nil {
		return 0, err
	}
	for _, running := range status.Machines {
		for pid, t := range tasks {
			if running.Name == m.Name && running.PID != 0 && t.parent == running.PID && programOf(pid) == p.Path {
				return pid, nil
			}
		}
	}
	return 0, fmt.Errorf("machine %s runs no %s", m.Name, p.Path)
}

// programOf returns the first argument of a process, empty if it has ended.
func programOf(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	program, _, _ := bytes.Cut(text, []byte{0})
	return string(program)
}

// SignalContainer sends a signal to all processes of a container, by its ID as the runtime has it. Only control groups of
// this cluster are searched.
func (c *Cluster) SignalContainer(id string, signal syscall.Signal) error {
	files, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return fmt.Errorf("list processes: %w", err)
	}
	own, found := cgroupOf(c.Name())+"/", false
	for _, file := range files {
		text, _ := os.ReadFile(file)
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil || id == "" || !bytes.Contains(text, []byte(own)) || !bytes.Contains(text, []byte(id)) {
			continue
		}
		if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("send %s to process %d of container %s: %w", signal, pid, id, err)
		}
		found = true
	}
	if !found {
		return fmt.Errorf("send %s: container %q has no process", signal, id)
	}
	return nil
}

// Unplug takes the node off the network: it, and each of its pods, reaches nothing outside of the node.
func (n Node) Unplug(ctx context.Context) error { return n.plug(ctx, false) }

// Plug ends Unplug.
func (n Node) Plug(ctx context.Context) error { return n.plug(ctx, true) }

func (n Node) plug(ctx context.Context, on bool) error {
	status, err := n.cluster.Status(ctx)
	if err != nil {
		return err
	}
	network, err := openNetwork(status.Machines[0].PID)
	if err != nil {
		return err
	}
	defer network.close()
	return network.plug(n.machine.Index, on)
}
