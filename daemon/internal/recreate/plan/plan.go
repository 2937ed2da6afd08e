package plan

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/result"
)

// NoAnswer is how long a request waits for a sign of life of its node agent.
const NoAnswer = 60 * time.Second

// Names of the steps of a plan.
const (
	stepSeen    = "seen"
	stepRelease = "release"
	stepLabels  = "labels"
	stepTTL     = "ttl"
	stepMark    = "mark"
	stepHold    = "hold"
)

// Snapshot is the input of the plan for one request, read-only.
type Snapshot struct {
	// Request is the request.
	Request *v1beta1.ContainerRecreateRequest
	// Pod is the pod of its name, nil when there is none.
	Pod *corev1.Pod
	// Waits means that it is the turn of another request for the pod, and that the pod was not read.
	Waits bool
	// FirstSeen is when this process first saw the request, LastSign when it last saw that the agent had
	// written into a request for the pod, but no earlier than FirstSeen.
	FirstSeen, LastSign time.Time
	// Refusals are the server's earlier refusals.
	Refusals action.Refusals
	// Now is the moment of the pass.
	Now time.Time
	// Clock names the machine with the clock of all these times.
	Clock string
}

// Plan is the result of one pass over a request: steps, or a status.
type Plan struct {
	action.Plan

	// A step on the request changes the version that a status patch would name, and brings the request back: the status is
	// patched once no such step is done.
	status v1beta1.ContainerRecreateRequestStatus
	// holding is true if a step takes the pod out of service.
	holding bool
}

// Status returns the next status, given the failed steps. A request waits if its pod may not be taken out of service.
func (p Plan) Status(done action.Failures) v1beta1.ContainerRecreateRequestStatus {
	next := *p.status.DeepCopy()
	if text := cmp.Or(done.Budget, done.Blocked, done.UpdateError); p.holding && text != "" {
		meta.SetStatusCondition(&next.Conditions, metav1.Condition{
			Type:               v1beta1.PreRecreateGrace,
			Status:             metav1.ConditionFalse,
			LastTransitionTime: metav1.NewTime(p.Now),
			Reason:             HoldRefused,
			Message:            "the pod could not be set to not ready: " + text,
		})
	}
	return next
}

// Open reports whether something is still to be done for a request.
func Open(r *v1beta1.ContainerRecreateRequest) bool {
	return r.Status.Phase != v1beta1.RecreateCompleted && r.DeletionTimestamp == nil
}

// Active reports whether a request holds its pod or waits for it.
func Active(r *v1beta1.ContainerRecreateRequest) bool { return Open(r) || hasFinalizer(r) }

// Compute makes the plan of one pass. It never changes the snapshot.
func Compute(s Snapshot) Plan {
	p := &pass{Snapshot: s, plan: Plan{
		Plan: action.Plan{Refusals: s.Refusals, Now: s.Now}, status: *s.Request.Status.DeepCopy(),
	}}
	p.decide()
	p.plan.Plan = action.Admit(p.plan.Plan)
	return p.plan
}

// decide brings the request on.
func (p *pass) decide() {
	if !Open(p.Request) {
		p.finish()
		return
	}
	if message, ok := p.ends(); ok {
		p.complete(message)
		return
	}
	if p.Request.Status.Phase == v1beta1.RecreateRecreating {
		p.hold()
		if p.plan.Empty() {
			p.observe()
		}
	}
	if p.Request.Spec.ActiveDeadlineSeconds != nil {
		p.rememberFirst()
	}
}

type pass struct {
	Snapshot
	plan Plan
}

// pod returns the pod that the request means, nil when that one is gone.
func (p *pass) pod() *corev1.Pod {
	if p.Pod == nil || string(p.Pod.UID) != p.Request.Labels[v1beta1.PodUIDLabel] {
		return nil
	}
	return p.Pod
}

// ends reports whether the request is to be completed unfinished, and why; if not, when to ask again.
func (p *pass) ends() (message string, ends bool) {
	age, silence := p.Now.Sub(p.firstSeen()), p.Now.Sub(p.LastSign)
	var limit time.Duration
	if seconds := p.Request.Spec.ActiveDeadlineSeconds; seconds != nil {
		limit = action.Seconds(*seconds)
	}
	message, ends = p.withoutPod()
	switch {
	case ends:
		return message, true
	case limit > 0 && age >= limit:
		return MessageDeadline, true
	case p.expectsSigns() && silence >= NoAnswer:
		return MessageNoAnswer, true
	case p.expectsSigns():
		p.plan.RequeueWithin(NoAnswer - silence)
	}
	p.plan.RequeueWithin(limit - age)
	return "", false
}

// withoutPod reports whether the pod starts no container any more, and why.
func (p *pass) withoutPod() (message string, ends bool) {
	if p.Waits {
		return "", false
	}
	switch pod := p.pod(); {
	case pod == nil, pod.DeletionTimestamp != nil:
		return MessagePodGone, true
	case over(pod, p.Request):
		return MessagePodOver, true
	}
	return "", false
}

// expectsSigns reports whether an agent that works on the request sends heartbeats.
func (p *pass) expectsSigns() bool {
	return p.Request.Status.Phase == "" || p.Request.Labels[v1beta1.NodeTypeLabel] != v1beta1.VirtualKubelet
}

// complete ends the request. The facts about its containers stay.
func (p *pass) complete(message string) {
	p.plan.status.Phase = v1beta1.RecreateCompleted
	p.plan.status.CompletionTime = new(metav1.NewTime(p.Now))
	p.plan.status.Message = message
	p.plan.status.Conditions = result.Early(p.Request, reasonOf(message), message, *p.plan.status.CompletionTime)
	notice := action.Notice{
		Type:       corev1.EventTypeWarning,
		Reason:     EventUncompleted,
		Note:       "The request has ended before its containers were recreated: " + message,
		WithStatus: true,
	}
	if pod := p.pod(); pod != nil {
		notice.Related = pod
	}
	p.plan.Notices = append(p.plan.Notices, notice)
}

// finish lets go of the pod, then of the request's own marks, and deletes the request in its time.
func (p *pass) finish() {
	if hasFinalizer(p.Request) && (p.awaitStop() || p.release()) {
		return // the finalizer goes once the pod shows that it is free
	}
	completed := p.Request.Status.Phase == v1beta1.RecreateCompleted
	if body := p.marks(completed); len(body) > 0 {
		p.patchRequest(stepLabels, "Finished", "the request has ended", body)
		return
	}
	if ttl := p.Request.Spec.TTLSecondsAfterFinished; ttl != nil && completed && p.Request.DeletionTimestamp == nil {
		p.expire(action.Seconds(*ttl))
	}
}

// marks returns the change of the metadata of a request that is over.
func (p *pass) marks(completed bool) map[string]any {
	body := map[string]any{}
	if hasFinalizer(p.Request) {
		left := []any{}
		for _, name := range p.Request.Finalizers {
			if name != v1beta1.UnreadyAcquiredFinalizer {
				left = append(left, name)
			}
		}
		body["finalizers"] = left
	}
	if _, active := p.Request.Labels[v1beta1.ActiveLabel]; active && completed {
		body["labels"] = map[string]any{v1beta1.ActiveLabel: nil}
	}
	_, seen := p.recall(CompletionSeenAnnotation)
	if p.Request.Spec.TTLSecondsAfterFinished != nil && completed && !seen && p.Request.DeletionTimestamp == nil {
		body["annotations"] = map[string]any{CompletionSeenAnnotation: p.moment(p.Now)}
	}
	return body
}

func (p *pass) expire(ttl time.Duration) {
	since, _ := p.recall(CompletionSeenAnnotation)
	if left := ttl - p.Now.Sub(since); left > 0 {
		p.plan.RequeueWithin(left)
		return
	}
	p.plan.Add(action.Step{Name: stepTTL, Actions: []action.Action{{
		Verb:    action.Delete,
		Object:  p.Request,
		Reason:  "TTLExpired",
		Message: "ttlSecondsAfterFinished has passed",
	}}})
}

func (p *pass) patchRequest(step, reason, message string, metadata map[string]any) {
	p.plan.Add(action.Step{Name: step, Actions: []action.Action{{
		Verb:    action.PatchMetadata,
		Object:  p.Request,
		Reason:  reason,
		Message: message,
		Patches: []action.Patch{{Type: types.MergePatchType, Body: map[string]any{"metadata": metadata}}},
	}}})
}

func hasFinalizer(r *v1beta1.ContainerRecreateRequest) bool {
	return slices.Contains(r.Finalizers, v1beta1.UnreadyAcquiredFinalizer)
}
