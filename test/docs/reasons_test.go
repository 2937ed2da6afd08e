package docs

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// explained is where users look up the conditions, reasons and events of some packages.
type explained struct {
	page, section string
	folders       []string
}

const ofJobs, ofOthers = "docs/reference/events-of-jobs.md", "docs/reference/events.md"

// sections are those of kinds that share no reasons with others.
func sections() []explained {
	return []explained{
		{ofJobs, "AdvancedCronJob", []string{"jobs/internal/advancedcronjob/plan"}},
		{ofJobs, "BroadcastJob", []string{"jobs/internal/broadcastjob/plan"}},
		{ofJobs, "ImagePullJob", []string{"jobs/internal/imagepulljob/plan"}},
		{ofJobs, "ImageListPullJob", []string{"jobs/internal/imagelistpulljob/plan"}},
		{ofJobs, "SidecarTerminator", []string{"jobs/internal/sidecarterminator/plan"}},
		{ofOthers, "WorkloadSpread", []string{"spread/internal/workloadspread/plan", "spread/api/v1beta1"}},
		{ofOthers, "PodUnavailableBudget", []string{"budget/internal/disruption"}},
		{ofOthers, "NodeImage", []string{"daemon/internal/nodeimage/plan", "daemon/internal/agent/imagepull"}},
		{ofOthers, "ContainerRecreateRequest", []string{"daemon/internal/recreate/plan", "daemon/internal/recreate/result", "daemon/internal/agent/containerstop"}},
		{ofOthers, "Container launch priority", []string{"daemon/internal/launch/plan"}},
		{ofOthers, "Pods of workloads", []string{"daemon/internal/agent/containermeta/plan"}},
	}
}

// elsewhere are the words of a section that constants of other packages have, or constants that have the name of no reason.
func elsewhere() map[string][]string {
	return map[string][]string{
		"AdvancedCronJob":          {"Scheduling", "LastRunSucceeded"},
		"ImagePullJob":             {"PullImageFailed"},
		"SidecarTerminator":        {"SidecarTerminated"},
		"WorkloadSpread":           {"TargetFound", "AllPlaced", "Schedulable", "RescheduleLimited", "Overlapped"},
		"ContainerRecreateRequest": {"PreRecreateGrace", "HoldRefused", "Complete", "Failed"},
		"Pods of workloads":        {"InPlaceUpdateReady", "StartInPlaceUpdate"},
	}
}

// ofWorkloads are the pages of the kinds that share most of their reasons, and their packages.
func ofWorkloads() (pages, packages []string) {
	return []string{"docs/reference/conditions.md", "docs/features/cloneset.md", "docs/features/statefulset.md", "docs/features/daemonset.md"},
		[]string{
			"core/plan/action", "core/pods/inplace/completion", "core/workloads/conditions", "core/workloads/failures", "core/workloads/podupdate",
			"core/workloads/predownload",
			"cloneset/internal/cloneset/plan", "statefulset/internal/statefulset/plan", "daemonset/internal/daemonset/plan",
			"cloneset/api/v1beta1", "statefulset/api/v1beta1", "daemonset/api/v1beta1",
		}
}

// reasonsOf returns the reasons of the packages in some folders, by the names of their constants.
func reasonsOf(t *testing.T, folders ...string) map[string][]string {
	t.Helper()
	found := constants(sources(t), func(s source) bool { return slices.Contains(folders, path.Dir(s.path)) })
	for name := range found {
		if !slices.ContainsFunc([]string{"Event", "Reason", "Wait", "Condition", "Failure"}, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) ||
			strings.HasSuffix(name, "Annotation") {
			delete(found, name)
		}
	}
	return found
}

// words returns the quotes in the columns of the tables of a text that name conditions, reasons or events, by the first word of
// the head of the column.
func words(text string) map[string][]string {
	found := map[string][]string{}
	var head []string
	for line := range strings.SplitSeq(text, "\n") {
		if !strings.HasPrefix(line, "|") {
			head = nil
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if head == nil {
			head = cells
			continue
		}
		for i, cell := range cells[:min(len(cells), len(head))] {
			kind, _, _ := strings.Cut(strings.Trim(head[i], " `"), " ")
			if kind == "condition" || kind == "reason" || kind == "event" || kind == "in" {
				for _, quote := range span.FindAllStringSubmatch(cell, -1) {
					found[kind] = append(found[kind], quote[1])
				}
			}
		}
	}
	return found
}

// sectionOf returns the text of a section of a page.
func sectionOf(t *testing.T, page, title string) string {
	t.Helper()
	_, section, ok := strings.Cut(text(t, page), "\n## "+title+"\n")
	require.True(t, ok, "%s has no section %s", page, title)
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}

// A reason, a condition or an event of the code has its row, and a row is about one of the code.
func TestReasonsAreThoseOfTheCode(t *testing.T) {
	titles := map[string][]string{}
	for _, section := range sections() {
		titles[section.page] = append(titles[section.page], section.section)
		listed := words(sectionOf(t, section.page, section.section))
		all := slices.Concat(listed["condition"], listed["reason"], listed["event"], listed["in"])
		known := map[string]bool{}
		for name, values := range reasonsOf(t, section.folders...) {
			for _, value := range values {
				known[value] = true
				column := all
				switch {
				case strings.HasPrefix(name, "Event"):
					column = listed["event"]
				case strings.HasPrefix(name, "Wait"):
					column = listed["in"]
				}
				assert.Contains(t, column, value, "%s: no row explains %s", section.section, name)
			}
		}
		for _, word := range elsewhere()[section.section] {
			assert.Contains(t, all, word, section.section)
		}
		for _, word := range all {
			assert.True(t, known[word] || slices.Contains(elsewhere()[section.section], word), "%s: nothing in the code has %s", section.section, word)
		}
	}
	for page, known := range titles {
		for _, part := range strings.Split(text(t, page), "\n## ")[1:] {
			title, _, _ := strings.Cut(part, "\n")
			assert.Contains(t, known, title, "%s: no package has the reasons of the section", page)
		}
	}
}

// The same of workloads: their tests look for each reason in all of their pages.
func TestReasonsOfWorkloadsAreThoseOfTheCode(t *testing.T) {
	pages, packages := ofWorkloads()
	known := map[string]bool{}
	for _, values := range constants(sources(t), func(s source) bool { return slices.Contains(packages, path.Dir(s.path)) }) {
		for _, value := range values {
			known[value] = true
		}
	}
	rows := 0
	for _, page := range pages {
		listed := words(text(t, page))
		for _, word := range slices.Concat(listed["condition"], listed["reason"], listed["event"]) {
			rows++
			assert.True(t, known[word] || ofResizes(word), "%s: nothing in the code has %s", page, word)
		}
	}
	assert.Greater(t, rows, 80)
}

// ofResizes reports whether a reason ends with that of the kubelet.
func ofResizes(word string) bool {
	return slices.Contains([]string{"ResizeDeferred", "ResizeInfeasible", "ResizeError"}, word)
}

// Each package with reasons has pages that are held to it.
func TestReasonsAreOfKnownPackages(t *testing.T) {
	_, known := ofWorkloads()
	for _, section := range sections() {
		known = append(known, section.folders...)
	}
	for _, file := range sources(t) {
		if path.Base(file.path) == "reasons.go" && !slices.Contains([]string{"core/frame", "kustomize/explain"}, path.Dir(file.path)) {
			assert.Contains(t, known, path.Dir(file.path), "which page explains its reasons?")
		}
	}
}

func TestWordsAreThoseOfNamedColumns(t *testing.T) {
	assert.Equal(t, map[string][]string{"event": {"A", "B"}, "reason": {"C"}, "in": {"E"}},
		words("`x`\n\n| event | reason | meaning |\n|---|---|---|\n| `A`, `B` | `C` | `D` |\n\n| in the log | meaning |\n|---|---|\n| `E` | `F` |\n"))
}
