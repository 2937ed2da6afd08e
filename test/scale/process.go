package scale

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ticksPerSecond is the unit of CPU time in /proc, the same on every Linux that Go supports.
const ticksPerSecond = 100

// process is a process whose cost is measured, on Linux only.
type process struct {
	name string
	pid  int
}

// find looks for a process by the base name of its command and a text in its arguments.
func find(command, argument string) (process, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return process{}, err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		arguments := strings.Split(string(data), "\x00")
		if filepath.Base(arguments[0]) == command && strings.Contains(string(data), argument) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			return process{command, pid}, err
		}
	}
	return process{}, fmt.Errorf("no process %s has %q among its arguments", command, argument)
}

func (p process) read(file string) (string, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.pid, file))
	if err != nil {
		return "", fmt.Errorf("look at process %s: %w", p.name, err)
	}
	return string(data), nil
}

// cpu returns the CPU time that the process has taken so far, in seconds.
func (p process) cpu() (float64, error) {
	stat, err := p.read("stat")
	if err != nil {
		return 0, err
	}
	// The name of the command, in parentheses, may contain anything; the third field follows it.
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("read the CPU time of process %s: %q", p.name, stat)
	}
	total := 0
	for _, field := range fields[11:13] { // user and system
		ticks, err := strconv.Atoi(field)
		if err != nil {
			return 0, fmt.Errorf("read the CPU time of process %s: %w", p.name, err)
		}
		total += ticks
	}
	return float64(total) / ticksPerSecond, nil
}

// peak returns the maximum of resident memory since forgetPeak, in MiB.
func (p process) peak() (int, error) {
	status, err := p.read("status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(status) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.Atoi(strings.Fields(value)[0])
			return kib >> 10, err
		}
	}
	return 0, fmt.Errorf("process %s tells no peak of its memory", p.name)
}

func (p process) forgetPeak() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.pid), []byte("5"), 0)
}

// meter measures the cost of processes since its start.
type meter struct {
	processes []process
	before    []float64
}

func startMeter(processes []process) (*meter, error) {
	m := &meter{processes: processes}
	for _, p := range processes {
		cpu, err := p.cpu()
		if err != nil {
			return nil, err
		}
		if err := p.forgetPeak(); err != nil {
			return nil, fmt.Errorf("reset the peak of process %s: %w", p.name, err)
		}
		m.before = append(m.before, cpu)
	}
	return m, nil
}

// cost returns the cost of each process, by name.
func (m *meter) cost() (map[string]Cost, error) {
	costs := map[string]Cost{}
	for i, p := range m.processes {
		cpu, err := p.cpu()
		if err != nil {
			return nil, err
		}
		peak, err := p.peak()
		if err != nil {
			return nil, err
		}
		costs[p.name] = Cost{CPU: cpu - m.before[i], PeakMiB: peak}
	}
	return costs, nil
}
