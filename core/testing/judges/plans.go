package judges

import (
	"fmt"
	"iter"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/lifecycle"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/workloads/revision"
)

// Judge reports plans that break an invariant.
type Judge struct {
	// Name is the invariant.
	Name string
	// Judge returns what breaks it in the steps of a plan.
	Judge func(steps []action.Step) []string
}

// ApplyJudges records what the judges find in a plan as violations of the world, with the text of the plan.
func (w *World) ApplyJudges(steps []action.Step, text string, judges ...Judge) {
	for _, j := range judges {
		for _, wrong := range j.Judge(steps) {
			w.Violate("%s: %s\n%s", j.Name, wrong, text)
		}
	}
}

// CommonJudges returns the judges of every plan. An object has at most one action, because a second one would name the
// version before the first; and every action writes something, because one without a change would be planned again in
// every pass.
func CommonJudges() []Judge {
	return []Judge{{"one action for each object", oneActionEach}, {"every action writes", everyActionWrites}}
}

func oneActionEach(steps []action.Step) []string {
	seen := map[string]bool{}
	var wrong []string
	for a := range Actions(steps, "") {
		key := cluster.KindOf(a.Object) + " " + a.Object.GetName()
		if seen[key] {
			wrong = append(wrong, key)
		}
		seen[key] = true
	}
	return wrong
}

func everyActionWrites(steps []action.Step) []string {
	var wrong []string
	for a := range Actions(steps, "") {
		if a.Verb != action.Create && a.Verb != action.Delete && len(a.Patches) == 0 {
			wrong = append(wrong, a.String())
		}
	}
	return wrong
}

// NoBreakOfHooks returns the judge that no pod is deleted or updated while a hook holds it; a nil lifecycle has none.
func NoBreakOfHooks(l *workload.Lifecycle) Judge {
	return Judge{"hooks hold", func(steps []action.Step) []string {
		var wrong []string
		for a := range Actions(steps, "") {
			pod, ok := a.Object.(*corev1.Pod)
			if !ok || l == nil {
				continue
			}
			if a.Verb == action.Delete && lifecycle.Hooked(l.PreDelete, pod) {
				wrong = append(wrong, "preDelete: "+a.String())
			}
			_, moves := LabelIn(a, contract.RevisionLabel)
			if moves && a.Reason == "Update" && lifecycle.Hooked(l.InPlaceUpdate, pod) && lifecycle.State(pod) != contract.LifecycleUpdating {
				wrong = append(wrong, "inPlaceUpdate: "+a.String())
			}
		}
		return wrong
	}}
}

// NoLossOfRevisions returns the judge that no revision is deleted that was chosen or that an active pod has.
func NoLossOfRevisions(chosen revision.Choice, pods []*corev1.Pod) Judge {
	return Judge{"live revisions stay", func(steps []action.Step) []string {
		live := map[string]bool{}
		for _, r := range []*appsv1.ControllerRevision{chosen.Update, chosen.Current} {
			if r != nil {
				live[podstate.ShortHash(r.Name)] = true
			}
		}
		for _, o := range pods {
			if podstate.IsActive(o) {
				live[podstate.ShortHash(o.Labels[contract.RevisionLabel])] = true
			}
		}
		var wrong []string
		for a := range Actions(steps, "") {
			if r, ok := a.Object.(*appsv1.ControllerRevision); ok && a.Verb == action.Delete && live[podstate.ShortHash(r.Name)] {
				wrong = append(wrong, r.Name)
			}
		}
		return wrong
	}}
}

// NoSpreadOfUntried returns the judge that of pods out of service no more are moved to the revision than may be out of service
// there, as long as none of the revision is available. look returns the state of a pod.
func NoSpreadOfUntried(hash string, pods []*corev1.Pod, most int, look func(*corev1.Pod) podstate.State) Judge {
	return Judge{"a revision is tried before all broken pods have it", func(steps []action.Step) []string {
		there := 0
		for _, o := range pods {
			switch state := look(o); {
			case state.Revision != hash || !state.Active:
			case state.Available:
				return nil
			default:
				there++
			}
		}
		if moved := movedOutOfService(hash, steps, look); moved > 0 && there+moved > most {
			return []string{fmt.Sprintf("%d pods, %d may be out of service", there+moved, most)}
		}
		return nil
	}}
}

// movedOutOfService returns how many pods out of service the steps move to the revision.
func movedOutOfService(hash string, steps []action.Step, look func(*corev1.Pod) podstate.State) int {
	moved := 0
	for a := range Actions(steps, "") {
		pod, ok := a.Object.(*corev1.Pod)
		if !ok || a.Verb == action.Create {
			continue
		}
		state, label := look(pod), ""
		if a.Reason == "Update" {
			value, _ := LabelIn(a, contract.RevisionLabel)
			label = podstate.ShortHash(value)
		}
		if state.Revision != hash && state.Active && !state.Available && (a.Reason == "Recreate" || label == hash) {
			moved++
		}
	}
	return moved
}

// Actions returns the actions of the steps with the name, of all steps with an empty one.
func Actions(steps []action.Step, name string) iter.Seq[action.Action] {
	return func(yield func(action.Action) bool) {
		for _, s := range steps {
			for _, a := range s.Actions {
				if (name == "" || s.Name == name) && !yield(a) {
					return
				}
			}
		}
	}
}

// LabelIn returns the value that an action gives to a label of an object that exists, and whether it does.
func LabelIn(a action.Action, key string) (value string, set bool) {
	for _, patch := range a.Patches {
		meta, _ := patch.Body["metadata"].(map[string]any)
		labels, _ := meta["labels"].(map[string]any)
		if v, ok := labels[key].(string); ok {
			return v, true
		}
	}
	return "", false
}
