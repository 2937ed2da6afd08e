package plan

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"

	daemon "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

const (
	// requestPrefix and the UID of the pod are the name of the first request for a pod.
	requestPrefix = "sidecar-termination-"
	// ignoredSuffix follows in the name of the request for sidecars with ignored exit codes.
	ignoredSuffix = "-ignore"
	// mostRequests bounds how often sidecars are stopped that are started again.
	mostRequests = 5
	// firstPause is the time between the first two requests for the same sidecar. It doubles with each more.
	firstPause = 10 * time.Second
	// deadline is how long a request may take in addition to the grace periods, ttl how long it stays when it is over.
	deadline, ttl = 600, 600
	// defaultGrace is the grace period of a pod that does not set one.
	defaultGrace = 30
)

// RequestName returns the name of the n-th request, from 1, for a pod.
func RequestName(pod *corev1.Pod, suffix string, n int) string {
	name := requestPrefix + string(pod.UID) + suffix
	if n > 1 {
		name += "-" + strconv.Itoa(n)
	}
	return name
}

// request has the node agent stop the sidecars that run, unless it is at it. A sidecar that does not run cannot be
// stopped, and is waited for; the others do not wait with it.
func (p *pass) request(left []string, suffix string) {
	last, n := p.lastRequest(suffix)
	if last != nil && !p.mayFollow(last, n) {
		return
	}
	var running []string
	for _, name := range left {
		if isRunning(statusOf(p.Pod, name)) {
			running = append(running, name)
			continue
		}
		p.plan.Wait(WaitStart, p.Pod.Name, "sidecar %s has not started", name)
		if cause := trouble(statusOf(p.Pod, name)); cause != "" {
			p.warn(EventNeverStarted, "Main containers have ended, but sidecar %s has not started (%s): it is stopped as soon as it starts", name, cause)
		}
	}
	switch {
	case len(running) == 0:
		return
	case last != nil && n == mostRequests:
		p.warn(EventGivenUp, "Sidecars %s were started again after %d requests to stop them: their exit codes make the kubelet restart them", list(running), n)
		return
	case last != nil && named(last, running):
		if left := last.CreationTimestamp.Add(firstPause << (n - 1)).Sub(p.Now); left > 0 {
			p.plan.RequeueWithin(left)
			return
		}
	}
	r := p.newRequest(RequestName(p.Pod, suffix, n+1), running, n+1 == mostRequests)
	p.plan.Add(action.Step{Name: stepRequest, Actions: []action.Action{{
		Verb:    action.Create,
		Object:  r,
		Reason:  "MainContainersEnded",
		Message: "to stop " + list(running),
		Event:   told("Main containers have ended: trying to terminate sidecar [%s] using crr %s", list(running), r.Name),
	}}})
}

// trouble returns why a container does not start, empty for one that is about to.
func trouble(status *corev1.ContainerStatus) string {
	if status == nil || status.State.Waiting == nil {
		return ""
	}
	switch reason := status.State.Waiting.Reason; reason {
	case "PodInitializing", "ContainerCreating":
		return ""
	default:
		return reason
	}
}

// lastRequest returns the last request of those with the suffix, and its number. Earlier ones that are not over would
// keep the agent from it, and are deleted.
func (p *pass) lastRequest(suffix string) (last *daemon.ContainerRecreateRequest, n int) {
	var earlier []action.Action
	for i := mostRequests; i > 0; i-- {
		at := slices.IndexFunc(p.Requests, func(r *daemon.ContainerRecreateRequest) bool { return r.Name == RequestName(p.Pod, suffix, i) })
		switch {
		case at < 0:
		case last == nil:
			last, n = p.Requests[at], i
		case p.Requests[at].Status.Phase != daemon.RecreateCompleted && p.Requests[at].DeletionTimestamp == nil:
			earlier = append(earlier, action.Action{
				Verb:    action.Delete,
				Object:  p.Requests[at],
				Reason:  "Superseded",
				Message: "its containers have ended, and " + last.Name + " waits",
			})
		}
	}
	p.plan.Add(action.Step{Name: stepClear, Actions: earlier})
	return last, n
}

// mayFollow reports whether another request may follow this one: all its containers have ended, or it was carried out
// and some run again.
func (p *pass) mayFollow(r *daemon.ContainerRecreateRequest, n int) bool {
	if r.DeletionTimestamp != nil {
		return false
	}
	if r.Status.Phase != daemon.RecreateCompleted {
		return !slices.ContainsFunc(r.Spec.Containers, func(c daemon.ContainerToRecreate) bool { return !isTerminated(statusOf(p.Pod, c.Name)) })
	}
	stopped := slices.ContainsFunc(r.Status.ContainerRecreateStates, func(s daemon.ContainerRecreateState) bool { return s.IsKilled })
	if stopped || r.Spec.TTLSecondsAfterFinished == nil && n < mostRequests {
		return true
	}
	// It goes in its time, and is made again.
	p.warn(EventUnavailable, "The agent of node %s could not stop sidecars (ContainerRecreateRequest %s: %s)", p.Pod.Spec.NodeName, r.Name, r.Status.Message)
	return false
}

func named(r *daemon.ContainerRecreateRequest, names []string) bool {
	return slices.ContainsFunc(r.Spec.Containers, func(c daemon.ContainerToRecreate) bool { return slices.Contains(names, c.Name) })
}

// newRequest returns a request to stop the sidecars. The last one stays as long as the pod, so that there is none after
// it.
func (p *pass) newRequest(name string, sidecars []string, isLast bool) *daemon.ContainerRecreateRequest {
	grace := int64(defaultGrace)
	if p.Pod.Spec.TerminationGracePeriodSeconds != nil {
		grace = min(*p.Pod.Spec.TerminationGracePeriodSeconds, math.MaxInt32)
	}
	r := &daemon.ContainerRecreateRequest{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Pod.Namespace,
			Name:      name,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1",
				Kind:       "Pod",
				Name:       p.Pod.Name,
				UID:        p.Pod.UID,
				Controller: new(true),
			}},
		},
		Spec: daemon.ContainerRecreateRequestSpec{
			PodName:                 p.Pod.Name,
			Strategy:                &daemon.RecreateStrategy{ForceRecreate: true, FailurePolicy: daemon.FailurePolicyIgnore},
			ActiveDeadlineSeconds:   new(deadline + grace*int64(len(sidecars))),
			TTLSecondsAfterFinished: new(int32(ttl)),
		},
	}
	if isLast {
		r.Spec.TTLSecondsAfterFinished = nil
	}
	for _, sidecar := range sidecars {
		r.Spec.Containers = append(r.Spec.Containers, daemon.ContainerToRecreate{Name: sidecar})
	}
	return r
}

// String names the kinds of nodes in logs.
func (n Node) String() string {
	switch n {
	case NodeReal:
		return "real"
	case NodeVirtual:
		return "virtual"
	case NodeUnknown:
	}
	return fmt.Sprintf("unknown (%d)", n)
}
