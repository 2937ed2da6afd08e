package plan

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/lifecycle"
	"github.com/flotilla-project/flotilla/core/pods/podstate"

	"github.com/flotilla-project/flotilla/daemon/internal/podmarks"
)

// Names of the steps of a plan.
const (
	stepReady     = "readiness"
	stepClear     = "clear"
	stepOpen      = "open"
	stepCompleted = "completed"
)

// open is the value of every key.
const open = "true"

// Snapshot is the input of the plan for one pod, read-only.
type Snapshot struct {
	// Pod is the pod.
	Pod *corev1.Pod
	// ConfigMap is the ConfigMap that the pod's barriers name, nil if there is none.
	ConfigMap *corev1.ConfigMap
	// Refusals are the server's earlier refusals.
	Refusals action.Refusals
	// Now is the time of the pass.
	Now time.Time
}

// NeedsConfigMap reports whether a plan for the pod depends on its ConfigMap: containers may be restarted for as long as
// the pod lives, and each start reads a key.
func NeedsConfigMap(pod *corev1.Pod) bool {
	return podmarks.HasBarrier(pod) && (pod.DeletionTimestamp != nil || !over(pod))
}

// completed reports whether all barriers of the pod were open once.
func completed(pod *corev1.Pod) bool {
	return pod.Annotations[contract.ContainerLaunchPriorityCompletedAnnotation] == open
}

// launched reports whether the order of the pod's containers is of the past: all of them may start at any time.
func launched(pod *corev1.Pod) bool {
	ready := podstate.Condition(pod, corev1.ContainersReady)
	return completed(pod) || ready != nil && ready.Status == corev1.ConditionTrue
}

// NeedsReadiness reports whether the pod has our readiness gate without its condition, and no other controller will set it.
func NeedsReadiness(pod *corev1.Pod) bool {
	return podmarks.HasReadinessGate(pod) && podstate.Condition(pod, contract.KruisePodReady) == nil &&
		pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil && !over(pod)
}

// Compute makes the plan of one pass. It never changes the snapshot.
func Compute(s Snapshot) action.Plan {
	p := &pass{Snapshot: s, plan: action.Plan{Refusals: s.Refusals, Now: s.Now}}
	if NeedsReadiness(s.Pod) {
		p.setGateCondition()
	}
	switch {
	case !NeedsConfigMap(s.Pod):
	case s.Pod.DeletionTimestamp != nil:
		p.clear()
	default:
		p.launch()
	}
	return action.Admit(p.plan)
}

type pass struct {
	Snapshot
	plan action.Plan
}

// setGateCondition sets the first condition of a readiness gate.
func (p *pass) setGateCondition() {
	c := action.NewPodChange(p.Pod, metav1.NewTime(p.Now))
	lifecycle.SetInitialReadiness(c)
	p.plan.Add(action.Step{Name: stepReady, Actions: []action.Action{{
		Verb:        action.PatchStatus,
		Object:      p.Pod,
		Independent: true,
		Patches:     c.Patches(),
		Reason:      "ReadinessGate",
		Message:     "the pod has a readiness gate without a condition",
	}}})
}

// clear deletes the ConfigMap of a terminating pod: its containers are not started again, and another pod of its name
// must not find the barriers open. Garbage collection would do it only later.
func (p *pass) clear() {
	if p.ConfigMap == nil || p.ConfigMap.DeletionTimestamp != nil || !metav1.IsControlledBy(p.ConfigMap, p.Pod) {
		return
	}
	p.remove(stepClear, "PodTerminating", "the pod is terminating")
}

func (p *pass) remove(step, reason, message string) {
	p.plan.Add(action.Step{Name: step, Actions: []action.Action{{
		Verb:    action.Delete,
		Object:  p.ConfigMap,
		Reason:  reason,
		Message: message,
	}}})
}

// launch opens the barriers of the highest priority that is not ready, and of all above it: a container that
// is restarted needs its key again. Once all are open they stay so: removed keys are written again.
func (p *pass) launch() {
	waiting, all := p.priorities()
	if len(all) == 0 {
		return
	}
	level := slices.Min(all)
	if len(waiting) > 0 && !launched(p.Pod) {
		level = slices.Max(waiting)
	}
	keys := map[string]string{}
	lowest := true
	for _, priority := range all {
		if priority >= level {
			keys[podmarks.Key(priority)] = open
		}
		lowest = lowest && priority >= level
	}
	if !p.openBarriers(level, keys) {
		return
	}
	switch {
	case completed(p.Pod):
		return
	case lowest:
		p.complete()
		return
	}
	p.plan.Wait(WaitPriority, p.Pod.Name, "containers with a priority below %d wait until containers with priority %d are ready", level, level)
}

// priorities returns the priorities of the containers that have neither become ready nor ended with code 0, and those
// of all.
func (p *pass) priorities() (waiting, all []int) {
	for i := range p.Pod.Spec.Containers {
		c := &p.Pod.Spec.Containers[i]
		key, ok := podmarks.BarrierOf(p.Pod, c)
		if !ok {
			continue
		}
		priority, ok := podmarks.PriorityOf(key)
		if !ok {
			p.plan.Notices = append(p.plan.Notices, action.Notice{
				Type:   corev1.EventTypeWarning,
				Reason: EventInvalid,
				Note:   fmt.Sprintf("Container %s waits forever: key %q of its launch barrier must be a priority", c.Name, key),
			})
			continue
		}
		all = append(all, priority)
		if !passed(p.Pod, c.Name) {
			waiting = append(waiting, priority)
		}
	}
	return waiting, all
}

// openBarriers reports whether the world is such that the pod can be completed after the plan's steps.
func (p *pass) openBarriers(level int, keys map[string]string) bool {
	a := action.Action{
		Reason:  "LaunchBarrier",
		Message: fmt.Sprintf("containers of priority %d may start", level),
		Event: &action.Event{
			Succeeded: EventOpened,
			Note:      fmt.Sprintf("Containers of priority %d may start", level),
			Failed:    EventOpenFailed,
		},
	}
	switch {
	case p.ConfigMap == nil:
		a.Verb = action.Create
		a.Object = p.newConfigMap(keys)
	case p.ConfigMap.DeletionTimestamp != nil:
		p.plan.Wait(WaitTerminating, p.ConfigMap.Name, "it is being deleted")
		p.plan.RequeueWithin(10 * time.Second) // a ConfigMap without the label is not watched
		return false
	case !metav1.IsControlledBy(p.ConfigMap, p.Pod):
		if !p.leftover() {
			p.occupied()
			return false
		}
		p.remove(stepClear, "FormerPod", "it belongs to a previous pod of the same name")
		a.Verb = action.Create
		a.Object = p.newConfigMap(keys)
	case p.missing(keys), p.ConfigMap.Labels[podmarks.BarrierLabel] != open: // without the label the cache does not hold it
		a.Verb, a.Object = action.PatchMetadata, p.ConfigMap
		a.Patches = []action.Patch{{Type: types.MergePatchType, Body: map[string]any{
			"metadata": map[string]any{"labels": map[string]any{podmarks.BarrierLabel: open}}, "data": anyMap(keys),
		}}}
	default:
		return true
	}
	p.plan.Add(action.Step{Name: stepOpen, Actions: []action.Action{a}})
	return true
}

func (p *pass) missing(keys map[string]string) bool {
	for key := range keys {
		if _, ok := p.ConfigMap.Data[key]; !ok {
			return true
		}
	}
	return false
}

// leftover reports whether the ConfigMap belongs to a former pod of the same name.
func (p *pass) leftover() bool {
	owner := metav1.GetControllerOfNoCopy(p.ConfigMap)
	return owner != nil && owner.Kind == "Pod" && owner.APIVersion == "v1" && owner.UID != p.Pod.UID
}

// occupied: the ConfigMap of another object is neither written nor deleted.
func (p *pass) occupied() {
	note := fmt.Sprintf("Containers wait: ConfigMap %s exists and belongs to another object", p.ConfigMap.Name)
	p.plan.Notices = append(p.plan.Notices, action.Notice{
		Type:    corev1.EventTypeWarning,
		Reason:  EventOpenFailed,
		Note:    note,
		Related: p.ConfigMap,
	})
	p.plan.Wait(WaitOccupied, p.ConfigMap.Name, "it belongs to another object")
	p.plan.RequeueWithin(10 * time.Second)
}

func (p *pass) newConfigMap(keys map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Pod.Namespace,
			Name:      podmarks.ConfigMapName(p.Pod.Name),
			Labels:    map[string]string{podmarks.BarrierLabel: open},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1",
				Kind:       "Pod",
				Name:       p.Pod.Name,
				UID:        p.Pod.UID,
				Controller: new(true),
			}},
		},
		Data: keys,
	}
}

// complete marks the pod: all barriers are open, and there is nothing more to do.
func (p *pass) complete() {
	c := action.NewPodChange(p.Pod, metav1.NewTime(p.Now))
	c.SetAnnotation(contract.ContainerLaunchPriorityCompletedAnnotation, open)
	patches := c.Patches()
	for i := range patches {
		patches[i].AnyVersion = true // kubelet writes to a pod that starts all the time
	}
	p.plan.Add(action.Step{Name: stepCompleted, Actions: []action.Action{{
		Verb:        action.PatchMetadata,
		Object:      p.Pod,
		Independent: true,
		Patches:     patches,
		Reason:      "LaunchCompleted",
		Message:     "all containers may start",
	}}})
}

// passed reports whether a container no longer keeps containers of lower priority from starting: it is ready, or has ended
// with code 0.
func passed(pod *corev1.Pod, container string) bool {
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		if s.Name == container {
			return s.Ready || s.State.Terminated != nil && s.State.Terminated.ExitCode == 0
		}
	}
	return false
}

// over reports whether no container of the pod is started any more.
func over(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func anyMap(m map[string]string) map[string]any {
	all := make(map[string]any, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		all[key] = m[key]
	}
	return all
}
