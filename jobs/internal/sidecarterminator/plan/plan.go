package plan

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// Names of the steps of a plan.
const (
	stepImage   = "image"
	stepPhase   = "phase"
	stepRequest = "request"
	stepClear   = "clear"
)

// nodeRecheck is how often a node that is not known is looked for.
const nodeRecheck = 10 * time.Second

// conditionMessage is the message of condition SidecarTerminated.
const conditionMessage = "Terminated by Sidecar Terminator"

// pass is the state of making one plan.
type pass struct {
	Snapshot
	plan action.Plan
}

// Compute makes the plan of one pass. It never changes the snapshot.
func Compute(s Snapshot) action.Plan {
	p := &pass{Snapshot: s, plan: action.Plan{Refusals: s.Refusals, Now: s.Now}}
	switch {
	case !Due(s.Pod):
	case s.Node == NodeUnknown:
		p.plan.Wait(WaitNode, s.Pod.Spec.NodeName, "the node could not be read")
		p.plan.RequeueWithin(nodeRecheck)
	case s.Node == NodeVirtual:
		p.replaceImages()
	case s.Node == NodeReal:
		p.stop()
	}
	return action.Admit(p.plan)
}

// sidecars returns the names of the sidecars with such marks that have not ended.
func (p *pass) sidecars(of func(marks) bool) (names []string) {
	for i := range p.Pod.Spec.Containers {
		c := &p.Pod.Spec.Containers[i]
		if m := marksOf(c); m.sidecar() && of(m) && !ended(p.Pod, c) {
			names = append(names, c.Name)
		}
	}
	return names
}

// replaceImages gives sidecars on a virtual node images that exit at once: the provider restarts a container after a
// change of its image.
func (p *pass) replaceImages() {
	change := action.NewPodChange(p.Pod, metav1.NewTime(p.Now))
	names := p.sidecars(func(m marks) bool { return m.image != "" })
	for i := range p.Pod.Spec.Containers {
		c := &p.Pod.Spec.Containers[i]
		if m := marksOf(c); m.image != "" && !ended(p.Pod, c) {
			change.SetImage(c.Name, m.image)
		}
	}
	if change.Empty() {
		return
	}
	p.plan.Add(action.Step{Name: stepImage, Actions: []action.Action{{
		Verb:        action.UpdateInPlace,
		Object:      p.Pod,
		Independent: true,
		Patches:     change.Patches(),
		Reason:      "MainContainersEnded",
		Message:     "the images of " + list(names) + " are replaced",
		Event:       told("Main containers have ended: trying to terminate sidecar [%s] using in-place update", list(names)),
	}}})
}

// stop stops the sidecars on a real node: first those with exit codes that count. Once they have ended the pod gets the
// result of its main containers, and the others are stopped.
func (p *pass) stop() {
	counted := p.sidecars(func(m marks) bool { return m.stopped && !m.ignored })
	ignored := p.sidecars(func(m marks) bool { return m.ignored })
	switch {
	case podstate.Condition(p.Pod, contract.SidecarTerminated) == nil && len(counted)+len(ignored) == 0:
		return // those that are left are marked for virtual nodes only
	case !p.Served:
		p.warn(EventUnavailable, "Sidecars %s keep running: ContainerRecreateRequest is not installed in this cluster, or the operator has no permission to create it", list(append(counted, ignored...)))
	case final(p.Pod.Status.Phase):
		p.request(append(counted, ignored...), ignoredSuffix)
	case len(counted) > 0:
		p.request(counted, "")
	default:
		p.decide() // nothing is stopped for it before the pod shows it
	}
}

// decide gives the pod the result of its main containers. It is decided once: the result in the condition stays, even
// if the containers show another one later.
func (p *pass) decide() {
	phase := result(p.Pod)
	status := map[string]any{}
	if c := podstate.Condition(p.Pod, contract.SidecarTerminated); c != nil {
		if c.Reason != "" {
			phase = phaseOf(c.Reason)
		}
	} else {
		status["conditions"] = []any{map[string]any{
			"type":               contract.SidecarTerminated,
			"status":             string(corev1.ConditionTrue),
			"reason":             reasonOf(phase),
			"message":            conditionMessage,
			"lastTransitionTime": p.Now.UTC().Format(time.RFC3339),
		}}
	}
	status["phase"] = string(phase)
	p.plan.Add(action.Step{Name: stepPhase, Actions: []action.Action{{
		Verb:        action.PatchStatus,
		Object:      p.Pod,
		Independent: true,
		Reason:      "Decided",
		Message:     "the main containers have ended: the pod is " + string(phase),
		Patches:     []action.Patch{{Subresource: "status", Body: map[string]any{"status": status}}},
		Event:       &action.Event{Failed: EventFailed},
	}}})
}

func reasonOf(phase corev1.PodPhase) string {
	if phase == corev1.PodSucceeded {
		return ConditionSucceeded
	}
	return ConditionFailed
}

func phaseOf(reason string) corev1.PodPhase {
	if reason == ConditionSucceeded {
		return corev1.PodSucceeded
	}
	return corev1.PodFailed
}

func (p *pass) warn(reason, format string, args ...any) {
	p.plan.Notices = append(p.plan.Notices, action.Notice{
		Type:   corev1.EventTypeWarning,
		Reason: reason,
		Note:   fmt.Sprintf(format, args...),
	})
}

func told(format string, args ...any) *action.Event {
	return &action.Event{
		Succeeded: EventTerminating,
		Note:      fmt.Sprintf(format, args...),
		Failed:    EventFailed,
	}
}

func list(names []string) string { return strings.Join(names, ", ") }
