package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// table shows every pod before and after; what changed is green.
func (d *demo) table(old, now []corev1.Pod) string {
	columns := []string{"", "POD", "UID", "IP", "NODE", "IMAGE", "RESTARTS"}
	rows := append([][]string{columns}, pairs(old, now)...)
	widths := make([]int, len(columns))
	for _, r := range rows {
		for k, cell := range r {
			widths[k] = max(widths[k], len(cell))
		}
	}
	var b strings.Builder
	for n, r := range rows {
		for k, cell := range r {
			text := fmt.Sprintf("%-*s", widths[k], cell)
			switch {
			case n == 0:
				text = d.ink.bold(text)
			case r[0] == "after" && k > 0 && (rows[n-1][1] != r[1] || rows[n-1][k] != cell):
				text = d.ink.green(text)
			case r[0] == "before":
				text = d.ink.dim(text)
			}
			b.WriteString(text + "  ")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// pairs returns the rows of the pods, ordered by name: each pod before and after, if it existed.
func pairs(old, now []corev1.Pod) [][]string {
	rows := map[string][][]string{}
	for i := range old {
		rows[old[i].Name] = append(rows[old[i].Name], row("before", &old[i]))
	}
	for i := range now {
		rows[now[i].Name] = append(rows[now[i].Name], row("after", &now[i]))
	}
	var sorted [][]string
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		sorted = append(sorted, rows[name]...)
	}
	return sorted
}

func row(when string, o *corev1.Pod) []string {
	restarts := int32(0)
	if len(o.Status.ContainerStatuses) > 0 {
		restarts = o.Status.ContainerStatuses[0].RestartCount
	}
	return []string{when, o.Name, string(o.UID), o.Status.PodIP, o.Spec.NodeName, o.Spec.Containers[0].Image, fmt.Sprint(restarts)}
}

// ink colours text for a terminal. It does not for files and pipes, nor if NO_COLOR is set.
type ink struct{ on bool }

func newInk(f *os.File) ink {
	info, err := f.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	return ink{on: os.Getenv("NO_COLOR") == "" && (terminal || os.Getenv("FORCE_COLOR") != "")}
}

func (i ink) paint(code, text string) string {
	if !i.on || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (i ink) bold(text string) string   { return i.paint("1", text) }
func (i ink) dim(text string) string    { return i.paint("2", text) }
func (i ink) green(text string) string  { return i.paint("32", text) }
func (i ink) yellow(text string) string { return i.paint("33", text) }
func (i ink) red(text string) string    { return i.paint("31", text) }
