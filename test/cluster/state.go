package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// state describes a prepared cluster: the supervisor runs it from this, and later commands find it by this.
type state struct {
	Name       string
	Kubernetes string
	Nodes      int
	Simulated  bool
	NodeGrace  time.Duration
	Folder     string
	// Binaries is the folder of kubectl and the control plane.
	Binaries string
	// Containerd is the folder of containerd and ctr; empty without real nodes.
	Containerd string
	// SandboxProgram is the program of the sandbox image; empty without real nodes.
	SandboxProgram string
	// APIPort and RegistryPort are on the machine's loopback; RegistryPort is 0 where there is no registry.
	APIPort, RegistryPort int
	HostPorts             []int
	// Machines are the control plane, first, and the nodes.
	Machines []machine
}

// layout names the files below the state folder.
type layout string

func layoutOf(cache, name string) layout { return layout(filepath.Join(cache, "clusters", name)) }

func (l layout) path(elements ...string) string {
	return filepath.Join(append([]string{string(l)}, elements...)...)
}
func (l layout) stateFile() string                { return l.path("cluster.json") }
func (l layout) lock() string                     { return l.path("supervisor.lock") }
func (l layout) socket() string                   { return l.path("control.sock") }
func (l layout) command() string                  { return l.path("cluster") }
func (l layout) pki(file string) string           { return l.path("pki", file) }
func (l layout) log(process string) string        { return l.path("log", process+".log") }
func (l layout) record(process string) string     { return l.path("processes", process+".json") }
func (l layout) kubeconfig(user string) string    { return l.path(user + ".kubeconfig") }
func (l layout) config(machine, f string) string  { return l.path(machine, "config", f) }
func (l layout) private(machine, d string) string { return l.path(machine, "root", d) }

func (s state) layout() layout { return layout(s.Folder) }

// node finds a node's machine by name.
func (s state) node(name string) (machine, error) {
	for _, m := range s.Machines[1:] {
		if m.Name == name {
			return m, nil
		}
	}
	return machine{}, fmt.Errorf("cluster %s has no node %q", s.Name, name)
}

// process finds a process and its machine by the process's name.
func (s state) process(name string) (machine, Process, error) {
	for _, m := range s.Machines {
		for _, p := range m.Processes {
			if p.Name == name {
				return m, p, nil
			}
		}
	}
	return machine{}, Process{}, fmt.Errorf("cluster %s has no process %q", s.Name, name)
}

func (s state) write() error { return writeJSON(s.layout().stateFile(), s) }

// readState reads a cluster's state. The error is ErrNotRunning if there is none.
func readState(l layout) (state, error) {
	var s state
	err := readJSON(l.stateFile(), &s)
	if errors.Is(err, fs.ErrNotExist) {
		return s, ErrNotRunning
	}
	return s, err
}

// writeJSON replaces a file atomically, so that a reader never sees a part of it.
func writeJSON(path string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", filepath.Base(path), err)
	}
	if err := os.WriteFile(path+".new", append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func readJSON(path string, value any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, value); err != nil {
		return fmt.Errorf("decode %s: %w", path, err)
	}
	return nil
}
