package plan

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/eligibility"
	"github.com/flotilla-project/flotilla/core/pods/newpod"
	"github.com/flotilla-project/flotilla/core/pods/podspec"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

const (
	nameAlphabet = "bcdfghjklmnpqrstvwxz2456789"
	nameLength   = 5
	// longestBase leaves room for the random part of a pod's name, which is a host name, too.
	longestBase = 63 - nameLength - 1
)

// create makes pods for nodes that lack one, as many as may run. A pod that is about to leave has its place until it
// has gone, and one that is being stopped until it has ended.
func (p *pass) create() {
	limit, ok := p.readParallelism()
	if !ok {
		return
	}
	free := limit - int(p.status.Active)
	waiting := 0
	leaving := 0
	retrying := 0
	if free < 0 && p.Job.Status.ObservedGeneration != p.Job.Generation {
		p.notice(corev1.EventTypeWarning, EventTooMany, "%d pods run, parallelism allows %d", p.status.Active, limit)
	}
	for _, l := range p.places {
		if l.leaving() {
			free, leaving = free-1, leaving+1
		}
		if l.stopping() {
			free--
		}
		if l.retries() {
			retrying++
		}
	}
	step := action.Step{Name: "create", SlowStart: true}
	for _, l := range p.places {
		switch {
		case !l.waits():
		case free <= 0:
			waiting++
		case len(step.Actions) == action.MaxCreates:
			step.More = true
		default:
			step.Actions = append(step.Actions, p.newPod(l.name))
			free--
		}
	}
	p.plan.Add(step)
	p.explain(limit, waiting, leaving, retrying)
}

// explain sets the message: why a job that runs waits.
func (p *pass) explain(limit, waiting, leaving, retrying int) {
	switch s := p.status; {
	case s.Desired == 0:
		s.Message = MessageNoNodes
	case waiting > 0:
		s.Message = fmt.Sprintf("%d nodes wait: parallelism allows %d pods at a time", waiting, limit)
	case leaving > 0:
		s.Message = fmt.Sprintf("%d nodes wait for the end of terminating pods", leaving)
	case retrying > 0:
		s.Message = fmt.Sprintf("%d nodes get a new pod, because podFailurePolicy ignores the failure of the last one", retrying)
	case p.never() && s.Succeeded+s.Failed == s.Desired:
		s.Message = MessageServing
	}
}

func (p *pass) newPod(node string) action.Action {
	name := p.newName()
	pod := newpod.FromTemplate(&p.Job.Spec.Template, newpod.Options{
		Name:         name,
		GenerateName: p.base() + "-",
		Namespace:    p.Job.Namespace,
		Owner:        p.Owner,
		Labels:       map[string]string{v1beta1.BroadcastJobNameLabel: p.Job.Name, v1beta1.BroadcastJobUIDLabel: string(p.Job.UID)},
		Now:          p.Now,
	})
	podspec.DefaultAllToPullAlways(&pod.Spec)
	if p.Bind {
		pod.Spec.NodeName = node
	} else {
		eligibility.Pin(&pod.Spec, node)
	}
	return action.Action{
		Verb:          action.Create,
		Object:        pod,
		GeneratedName: true,
		Independent:   true,
		Reason:        "Broadcast",
		Message:       "on node " + node,
		Event: &action.Event{
			Succeeded:  EventCreated,
			Note:       "Created pod: " + name,
			Failed:     EventCreateFailed,
			FailedNote: "Error creating: ",
		},
	}
}

// base is the job's name, shortened where a pod's name would be too long.
func (p *pass) base() string {
	return strings.TrimRight(p.Job.Name[:min(len(p.Job.Name), longestBase)], "-.")
}

// newName is a name that no pod of the job has.
func (p *pass) newName() string {
	if p.taken == nil {
		p.taken = make(map[string]bool, len(p.Pods))
		for _, pod := range p.Pods {
			p.taken[pod.Name] = true
		}
	}
	id := make([]byte, nameLength)
	for {
		for i := range id {
			id[i] = nameAlphabet[p.rng.IntN(len(nameAlphabet))]
		}
		if name := p.base() + "-" + string(id); !p.taken[name] {
			p.taken[name] = true
			return name
		}
	}
}

// removeSurplus deletes pods of nodes that are gone or that drive them away, and all but one of several on a node.
// The result of a pod that has ended counts, wherever it ran.
func (p *pass) removeSurplus() {
	var surplus, gone []action.Action
	for _, l := range p.places {
		for _, pod := range l.pods {
			switch {
			case ended(pod) || pod.DeletionTimestamp != nil:
			case !l.stays():
				gone = append(gone, deletePod(pod, "NotEligible", "node "+l.name+" was deleted or no longer matches"))
			case l.recorded, pod != l.pod && l.state != leaving:
				surplus = append(surplus, deletePod(pod, "Duplicate", "node "+l.name+" has another pod of the job"))
				p.plan.Notices = append(p.plan.Notices, action.Notice{
					Type:    corev1.EventTypeWarning,
					Reason:  EventDuplicate,
					Related: pod,
					Note:    fmt.Sprintf("Node %s has more than one pod; pod %s is deleted", l.name, pod.Name),
				})
			}
		}
	}
	p.plan.Add(action.Step{Name: "delete from nodes", Actions: gone})
	p.plan.Add(action.Step{Name: "delete duplicates", Actions: surplus})
}

func deletePod(pod *corev1.Pod, reason, message string) action.Action {
	return action.Action{
		Verb:        action.Delete,
		Object:      pod,
		Independent: true,
		Reason:      reason,
		Message:     message,
		Event: &action.Event{
			Succeeded: EventDeleted,
			Failed:    EventDeleteFailed,
			Note:      "Deleted pod: " + pod.Name,
		},
	}
}

// stopFailed ends pods that have restarted too often: the node fails them, so that their logs and their exit codes stay.
func (p *pass) stopFailed() {
	var stop []action.Action
	for _, l := range p.places {
		for _, pod := range l.pods {
			if pod != l.pod || l.state != failed || ended(pod) || pod.DeletionTimestamp != nil || stopped(pod) {
				continue
			}
			stop = append(stop, action.Action{
				Verb:        action.PatchSpec,
				Object:      pod,
				Independent: true,
				Reason:      "RestartLimit",
				Message:     fmt.Sprintf("%d restarts, the limit is %d", restarts(pod), p.Job.Spec.FailurePolicy.RestartLimit),
				Event: &action.Event{
					Succeeded: EventStopped,
					Failed:    EventStopFailed,
					Note:      "Stopped pod: " + pod.Name,
				},
				Patches: []action.Patch{{Body: map[string]any{"spec": map[string]any{"activeDeadlineSeconds": 1}}, AnyVersion: true}},
			})
		}
	}
	p.plan.Add(action.Step{Name: "stop", Actions: stop})
}

// finish clears up after a job that has ended: pods that run are deleted if it failed, and only those that have
// restarted too often are stopped if it completed.
func (p *pass) finish() {
	if p.Job.Status.Phase != v1beta1.PhaseFailed {
		p.stopFailed()
		return
	}
	var left []action.Action
	for _, l := range p.places {
		for _, pod := range l.pods {
			if !ended(pod) && pod.DeletionTimestamp == nil {
				left = append(left, deletePod(pod, "JobFailed", "the job has failed"))
			}
		}
	}
	p.plan.Add(action.Step{Name: "delete", Actions: left})
}

// namesOfFailed names the first failed pods, with their nodes and exit codes.
func (p *pass) namesOfFailed() string {
	const most = 3
	var names []string
	for i := range min(most, len(p.status.Failures)) {
		f := &p.status.Failures[i]
		names = append(names, fmt.Sprintf("pod %s on node %s%s", f.Pod, f.Node, withExitCode(f.ExitCode)))
	}
	if more := int(p.status.Failed) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}
