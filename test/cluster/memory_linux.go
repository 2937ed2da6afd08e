package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// task is one process as /proc shows it.
type task struct {
	parent  int
	program string
	bytes   int64
}

// memoryOf returns the memory of the supervisor's processes by machine and program.
func memoryOf(supervisor int, machines []MachineStatus) ([]Memory, error) {
	tasks, err := listTasks()
	if err != nil {
		return nil, err
	}
	roots := map[int]string{supervisor: "supervisor"}
	for _, m := range machines {
		if m.PID != 0 {
			roots[m.PID] = m.Name
		}
	}
	sums := map[[2]string]*Memory{}
	for pid, t := range tasks {
		machine := rootOf(pid, tasks, roots)
		if machine == "" {
			continue
		}
		key := [2]string{machine, t.program}
		if sums[key] == nil {
			sums[key] = &Memory{Machine: machine, Program: t.program}
		}
		sums[key].Processes++
		sums[key].Bytes += t.bytes
	}
	var memory []Memory
	for _, sum := range sums {
		memory = append(memory, *sum)
	}
	sortMemory(memory)
	return memory, nil
}

// rootOf returns the nearest root among the process and its ancestors, empty if there is none.
func rootOf(pid int, tasks map[int]task, roots map[int]string) string {
	for pid > 0 {
		if name, ok := roots[pid]; ok {
			return name
		}
		pid = tasks[pid].parent
	}
	return ""
}

func listTasks() (map[int]task, error) {
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	tasks := map[int]task{}
	for _, folder := range folders {
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err != nil {
			continue
		}
		if t, ok := readTask(folder); ok {
			tasks[pid] = t
		}
	}
	return tasks, nil
}

// readTask reads one process; it may end meanwhile.
func readTask(folder string) (task, bool) {
	stat, err := os.ReadFile(filepath.Join(folder, "stat"))
	if err != nil {
		return task{}, false
	}
	statm, err := os.ReadFile(filepath.Join(folder, "statm"))
	if err != nil {
		return task{}, false
	}
	return parseTask(string(stat), string(statm), os.Getpagesize())
}

// parseTask reads "pid (program) state parent ..." and "size resident ...". A program's name may contain blanks and
// parentheses, but no field after its closing parenthesis does.
func parseTask(stat, statm string, pageSize int) (task, bool) {
	open := strings.IndexByte(stat, '(')
	end := strings.LastIndexByte(stat, ')')
	if open < 0 || end < open {
		return task{}, false
	}
	after, pages := strings.Fields(stat[end+1:]), strings.Fields(statm)
	if len(after) < 2 || len(pages) < 2 {
		return task{}, false
	}
	parent, err := strconv.Atoi(after[1])
	if err != nil {
		return task{}, false
	}
	resident, err := strconv.ParseInt(pages[1], 10, 64)
	return task{
		parent:  parent,
		program: stat[open+1 : end],
		bytes:   resident * int64(pageSize),
	}, err == nil
}
