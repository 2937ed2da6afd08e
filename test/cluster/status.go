package cluster

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Status is the state of a cluster's processes at one time.
type Status struct {
	Kubernetes            string
	Simulated             bool
	APIPort, RegistryPort int
	Machines              []MachineStatus
	Processes             []Record
	Memory                []Memory
}

// Memory is the memory that the processes of one program use on one machine.
type Memory struct {
	Machine, Program string
	Processes        int
	// Bytes is resident memory. Shared memory is counted for each process.
	Bytes int64
}

// Status asks the supervisor and the kernel. Memory is empty if the kernel cannot be asked.
func (c *Cluster) Status(ctx context.Context) (Status, error) {
	status := Status{
		Kubernetes:   c.state.Kubernetes,
		Simulated:    c.state.Simulated,
		APIPort:      c.state.APIPort,
		RegistryPort: c.state.RegistryPort,
	}
	if err := c.control(ctx, "GET", "/machines", &status.Machines); err != nil {
		return status, err
	}
	status.Processes = c.records()
	if pid, err := c.supervisorPID(ctx); err == nil {
		status.Memory, _ = memoryOf(pid, status.Machines)
	}
	return status, nil
}

func (c *Cluster) supervisorPID(ctx context.Context) (pid int, err error) {
	return pid, c.control(ctx, "GET", "/supervisor", &pid)
}

// records returns the records of all processes. Those of a stopped machine are from before it stopped.
func (c *Cluster) records() []Record {
	var records []Record
	for _, m := range c.state.Machines {
		for _, p := range m.Processes {
			var record Record
			if readJSON(p.Record, &record) == nil {
				records = append(records, record)
			}
		}
	}
	return records
}

// Logs returns the names of all logs, for LogFile.
func (c *Cluster) Logs() ([]string, error) {
	files, err := filepath.Glob(c.state.layout().log("*"))
	var names []string
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".log"))
	}
	slices.Sort(names)
	return names, err
}

// LogFile returns the path of one process's log, by a name such as kube-apiserver or n0-kubelet.
func (c *Cluster) LogFile(process string) (string, error) {
	path := c.state.layout().log(filepath.Base(process))
	if _, err := os.Stat(path); err != nil {
		return "", errors.New("no log of that name: " + process)
	}
	return path, nil
}

// sortMemory sorts by machine, then by size, the largest first.
func sortMemory(memory []Memory) {
	slices.SortFunc(memory, func(a, b Memory) int {
		return cmp.Or(cmp.Compare(a.Machine, b.Machine), cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Program, b.Program))
	})
}
