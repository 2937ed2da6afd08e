package operator

import (
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
)

// StatusStep returns the step that gives the object the status, a struct of its kind, for planners that write one. It
// has no actions when the object has that status already, and panics on a status that JSON cannot hold.
func StatusStep(o action.Object, status any) action.Step {
	step := action.Step{Name: "status"}
	if reflect.DeepEqual(cluster.Member(o, "Status"), status) {
		return step // as most of the time, and much sooner than JSON tells
	}
	have, want := asMap(cluster.Member(o, "Status")), asMap(status)
	for key := range have {
		if _, ok := want[key]; !ok {
			want[key] = nil
		}
	}
	for key := range want {
		if cluster.Same(have[key], want[key]) {
			delete(want, key)
		}
	}
	if len(want) > 0 {
		step.Actions = append(step.Actions, action.Action{
			Verb:   action.PatchStatus,
			Object: o,
			Reason: "Status",
			Patches: []action.Patch{{
				Subresource: "status",
				Type:        types.MergePatchType,
				Body:        map[string]any{"status": want},
			}},
		})
	}
	return step
}

// StatusOf returns the status of an object, nil where its kind has none.
func StatusOf(o action.Object) any { return cluster.Member(o, "Status") }

func asMap(status any) map[string]any {
	m := map[string]any{}
	raw, err := json.Marshal(status)
	if err == nil {
		err = json.Unmarshal(raw, &m)
	}
	if err != nil {
		panic(fmt.Sprintf("a status that is no JSON object: %v", err))
	}
	return m
}
