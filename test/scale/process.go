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

// memory returns the resident memory, in MiB.
func (p process) memory() (int, error) {
	statm, err := p.read("statm")
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(statm)
	if len(fields) < 2 {
		return 0, fmt.Errorf("read the memory of process %s: %q", p.name, statm)
	}
	pages, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0, fmt.Errorf("read the memory of process %s: %w", p.name, err)
	}
	return pages * os.Getpagesize() >> 20, nil
}
