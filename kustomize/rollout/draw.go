package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/kustomize/progress"
	"github.com/flotilla-project/flotilla/kustomize/workload"
)

// row is one revision with its pods.
type row struct {
	revision string
	role     string
	pods     []*corev1.Pod
}

// rows groups pods by revision: first the one that pods go to, then the one that they come from, then others by name.
func rows(s *workload.Set, pods []*corev1.Pod) []row {
	pods = slices.Clone(pods)
	workload.SortPods(pods)
	all := []row{{revision: s.UpdateRevision, role: "update"}}
	if s.CurrentRevision != "" && !workload.SameRevision(s.CurrentRevision, s.UpdateRevision) {
		all = append(all, row{revision: s.CurrentRevision, role: "current"})
	}
	known := len(all)
	for _, pod := range pods {
		label := workload.RevisionOf(pod)
		i := slices.IndexFunc(all, func(r row) bool { return workload.SameRevision(r.revision, label) || r.revision == label })
		if i < 0 {
			i = len(all)
			all = append(all, row{revision: label, role: "older"})
		}
		all[i].pods = append(all[i].pods, pod)
	}
	slices.SortFunc(all[known:], func(a, b row) int { return cmp.Compare(a.revision, b.revision) })
	return all
}

// cell is how a pod is drawn.
func cell(pod *corev1.Pod) string {
	switch workload.StateOf(pod) {
	case workload.Ready:
		return "●"
	case workload.Updating:
		return "◐"
	case workload.Ending:
		return "×"
	case workload.InTrouble:
		return "!"
	case workload.Starting:
	}
	return "○"
}

const legend = "● ready  ○ starting  ◐ updating in place or held  × terminating  ! failing"

// draw draws a rollout in lines of at most width columns: its progress, a line for each revision with a cell for each pod,
// and the meaning of the cells. Lines of cells that are too long continue in the next line.
func draw(s *workload.Set, pods []*corev1.Pod, width int) []string {
	p := progress.Judge(s)
	lines := []string{clip(fmt.Sprintf("%s/%s %s: %s", s.Kind.Name, s.Name, p.Phase, p.Message), width)}
	all := rows(s, pods)
	longest := 0
	for _, r := range all {
		longest = max(longest, len(r.name()))
	}
	for _, r := range all {
		head := fmt.Sprintf("  %-*s %-7s ", longest, r.name(), r.role)
		room := max(width-len(head), 10)
		cells := make([]string, 0, len(r.pods))
		for _, pod := range r.pods {
			cells = append(cells, cell(pod))
		}
		if len(cells) == 0 {
			cells = []string{"-"}
		}
		for part := range slices.Chunk(cells, room) {
			lines = append(lines, head+strings.Join(part, ""))
			head = strings.Repeat(" ", len(head))
		}
	}
	return append(lines, clip("  "+legend, width))
}

func (r row) name() string { return cmp.Or(r.revision, "(none)") }

func clip(line string, width int) string {
	runes := []rune(line)
	if len(runes) <= width {
		return line
	}
	return string(runes[:max(width-1, 0)]) + "…"
}

// describe is the drawing in words, in one line, for output that is no terminal.
func describe(s *workload.Set, pods []*corev1.Pod) string {
	var parts []string
	for _, r := range rows(s, pods) {
		if len(r.pods) == 0 {
			continue
		}
		count := map[workload.State]int{}
		for _, pod := range r.pods {
			count[workload.StateOf(pod)]++
		}
		var states []string
		for _, state := range workload.States() {
			if n := count[state]; n > 0 {
				states = append(states, fmt.Sprintf("%d %s", n, state))
			}
		}
		parts = append(parts, fmt.Sprintf("%s (%s) %s", r.name(), r.role, strings.Join(states, ", ")))
	}
	if len(parts) == 0 {
		return "no pods"
	}
	return strings.Join(parts, "; ")
}
