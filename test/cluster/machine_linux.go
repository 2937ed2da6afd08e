package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// runMachine is the init of a machine: PID 1 of its namespaces. It reads the machine from its input, which it receives
// when the network is ready. It returns only if the machine cannot be set up.
func runMachine(ctx context.Context, input io.Reader) error {
	var m machine
	if err := json.NewDecoder(input).Decode(&m); err != nil {
		return fmt.Errorf("read the machine: %w", err)
	}
	if err := m.setUp(); err != nil {
		return fmt.Errorf("set up machine %s: %w", m.Name, err)
	}
	children := reaper{ended: map[int]chan unix.WaitStatus{}}
	for _, p := range m.Processes {
		go keepRunning(ctx, p, children.run)
	}
	children.reap()
	return nil
}

func (m machine) setUp() error {
	if err := m.mountAll(); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(m.Name)); err != nil {
		return fmt.Errorf("set host name: %w", err)
	}
	if m.Cgroup != "" {
		// Groups of old containers are removed, as after any boot: the kubelet would spend many seconds on them.
		if err := removeCgroup(m.Cgroup); err != nil {
			return err
		}
		if err := makeCgroup(m.Cgroup); err != nil {
			return err
		}
	}
	// Pod addresses are routed, not translated, and answers may take another route.
	for key, value := range map[string]string{
		"ip_forward":             "1",
		"conf/all/rp_filter":     "0",
		"conf/default/rp_filter": "0",
	} {
		if err := os.WriteFile("/proc/sys/net/ipv4/"+key, []byte(value), 0); err != nil {
			return fmt.Errorf("set net/ipv4/%s: %w", key, err)
		}
	}
	return nil
}

// mountAll sets up the machine's file system. Sources are opened before anything is hidden, since the state folder may
// lie below /tmp, /run or /var/lib itself.
func (m machine) mountAll() error {
	// Mounts from here on must not be visible on the host.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	mounts := m.Mounts
	for _, folder := range m.Keep {
		mounts = append(mounts, mount{Source: folder, Target: folder, Mode: 0o755})
	}
	sources := make([]string, len(mounts))
	for i, mount := range mounts {
		fd, err := mount.open()
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		sources[i] = fmt.Sprintf("/proc/self/fd/%d", fd)
	}
	for i, mount := range mounts {
		if err := os.MkdirAll(mount.Target, 0o755); err != nil {
			return fmt.Errorf("make mount point: %w", err)
		}
		if err := unix.Mount(sources[i], mount.Target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("mount %s at %s: %w", mount.Source, mount.Target, err)
		}
	}
	// Pods with bidirectional mount propagation need a shared root.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("make mounts shared: %w", err)
	}
	return nil
}

func (m mount) open() (int, error) {
	if m.Volatile {
		if err := os.RemoveAll(m.Source); err != nil {
			return 0, fmt.Errorf("empty %s: %w", m.Source, err)
		}
	}
	if err := os.MkdirAll(m.Source, 0o755); err != nil {
		return 0, fmt.Errorf("make %s: %w", m.Source, err)
	}
	if m.Source != m.Target {
		if err := unix.Chmod(m.Source, m.Mode); err != nil {
			return 0, fmt.Errorf("set the mode of %s: %w", m.Source, err)
		}
	}
	fd, err := unix.Open(m.Source, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("open %s: %w", m.Source, err)
	}
	return fd, nil
}

// reaper starts children and waits for all that end: its own and the orphans that an init inherits, such as
// containerd's double-forked shims.
type reaper struct {
	mu    sync.Mutex
	ended map[int]chan unix.WaitStatus
}

func (r *reaper) run(_ context.Context, p Process, log *os.File) error {
	ended := make(chan unix.WaitStatus, 1)
	r.mu.Lock() // a child must be known before it can be collected
	pid, err := syscall.ForkExec(p.Path, append([]string{p.Path}, p.Args...), &syscall.ProcAttr{
		Env:   append(os.Environ(), p.Env...),
		Files: []uintptr{0, log.Fd(), log.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err == nil {
		r.ended[pid] = ended
	}
	r.mu.Unlock()
	if err != nil {
		return fmt.Errorf("start %s: %w", p.Path, err)
	}
	status := <-ended
	if status.Signaled() {
		return fmt.Errorf("signal: %s", status.Signal())
	}
	if status.ExitStatus() != 0 {
		return fmt.Errorf("exit status %d", status.ExitStatus())
	}
	return nil
}

// reap never returns.
func (r *reaper) reap() {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		if errors.Is(err, unix.ECHILD) {
			time.Sleep(probeInterval) // nothing to collect: the first process is not started yet
			continue
		}
		if err != nil || pid <= 0 {
			continue
		}
		r.mu.Lock()
		ended, known := r.ended[pid]
		delete(r.ended, pid)
		r.mu.Unlock()
		if known {
			ended <- status
		}
	}
}
