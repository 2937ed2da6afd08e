package health

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-project/flotilla/kustomize/catalog"
)

// leaveOut finds the components that the installation leaves out by choice, and expects their objects no longer. "flotilla install"
// remembers the choice. Other tools remember none: with them a component is left out if none of its objects is there.
func (r *Report) leaveOut(feature catalog.Feature, without []string) {
	if r.manager == nil {
		return
	}
	byOthers := r.manager.GetLabels()["app.kubernetes.io/managed-by"] != "flotilla"
	for _, component := range feature.Defaults {
		granted := func(object *unstructured.Unstructured) bool { return object.GetName() == feature.GrantOf(component) }
		out := slices.Contains(without, component)
		if byOthers && !out {
			out = true
			for _, live := range r.live {
				out = out && !granted(live)
			}
		}
		if out {
			r.wanted = slices.DeleteFunc(r.wanted, granted)
			r.leftOut = append(r.leftOut, component)
		}
	}
}

// leftOut notes the components that the installation leaves out.
func leftOut(report *Report) []Finding {
	var findings []Finding
	for _, component := range report.leftOut {
		findings = append(findings, Finding{
			About:   report.Feature,
			Trouble: fmt.Sprintf("component %s is left out, and with it its permissions", component),
			Help:    fmt.Sprintf("Objects that need them wait. To add the component: flotilla install %s --component %s", report.Feature, component),
			Note:    true,
		})
	}
	return findings
}
