package health

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/catalog"
)

// gates finds feature gates with which a manager or an agent does not start. Pods that run show no fault: the Deployment keeps
// the old ones until the new ones are ready. A gate that only other managers read is none: one list may serve all operators.
// Versions that are newer than this command may know more gates.
func gates(report *Report) []Finding {
	if report.Newer {
		return nil
	}
	var findings []Finding
	for _, wanted := range report.wanted {
		live, there := report.live[apply.Describe(wanted)]
		if !there || live.GetKind() != "Deployment" && live.GetKind() != "DaemonSet" {
			continue
		}
		for _, setting := range gatesSet(live) {
			trouble := judgeGate(setting)
			if trouble == "" {
				continue
			}
			name, _, _ := strings.Cut(setting, "=")
			findings = append(findings, Finding{
				About: report.Feature,
				Trouble: fmt.Sprintf("%s has feature gate %s, and version %s %s: its new pods end with an error",
					apply.Describe(live), setting, report.Available, trouble),
				Help: fmt.Sprintf("Remove the feature gate: flotilla install %s --feature-gates %s-", report.Feature, name),
			})
		}
	}
	return findings
}

// judgeGate returns why a process refuses NAME=BOOL; empty if it accepts it.
func judgeGate(setting string) string {
	name, value, valued := strings.Cut(setting, "=")
	switch _, err := strconv.ParseBool(strings.TrimSpace(value)); {
	case !valued:
		return "needs NAME=true or NAME=false"
	case !catalog.KnowsGate(strings.TrimSpace(name)):
		return "has no such gate"
	case err != nil:
		return "accepts only true and false as values"
	}
	return ""
}

// gatesSet returns the feature gates that the arguments of a workload's containers set, each as NAME=BOOL.
func gatesSet(workload *unstructured.Unstructured) []string {
	containers, _, _ := unstructured.NestedSlice(workload.Object, "spec", "template", "spec", "containers")
	var all []string
	for _, container := range containers {
		fields, _ := container.(map[string]any)
		var args []string
		for _, field := range []string{"command", "args"} {
			part, _, _ := unstructured.NestedStringSlice(fields, field)
			args = append(args, part...)
		}
		for i, arg := range args {
			flag, list, joined := strings.Cut(arg, "=")
			if flag != "--feature-gates" {
				continue
			}
			if !joined && i+1 < len(args) {
				list = args[i+1]
			}
			for setting := range strings.SplitSeq(list, ",") {
				if setting = strings.TrimSpace(setting); setting != "" {
					all = append(all, setting)
				}
			}
		}
	}
	return all
}
