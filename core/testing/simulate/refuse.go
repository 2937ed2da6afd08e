package simulate

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/plan/refusals"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// Refused is a kind of write that the server refuses for a while.
type Refused struct {
	// Write is the kind of write, one of WriteKinds, or the Right of one: all writes that need it.
	Write string
	// Code is the answer's status code, NoRight, ByBudget, or 0 for no answer: the write may be done or not.
	Code int
	// From and Until are moments since the beginning of the world.
	From, Until time.Duration
}

// NoRight is the answer, with code 403, of a server on which the operator has no permission (RBAC) for such writes.
const NoRight = -403

// ByBudget is the answer, with code 403, of a disruption budget.
const ByBudget = -1

// WriteKinds returns the kinds of writes that plans want; those of the workload's own kind are of a Workload.
func WriteKinds() []string {
	return []string{
		"create Pod", "delete Pod", "patch metadata of Pod", "patch owners of Pod",
		"patch spec of Pod", "patch status of Pod", "patch resize of Pod",
		"create PersistentVolumeClaim", "delete PersistentVolumeClaim", "patch metadata of PersistentVolumeClaim",
		"patch owners of PersistentVolumeClaim", "patch spec of PersistentVolumeClaim",
		"create ControllerRevision", "delete ControllerRevision", "patch number of ControllerRevision", "patch owners of ControllerRevision",
		"patch spec of Workload", "patch status of Workload",
	}
}

// Right returns what a role must allow for a kind of write.
func Right(kind string) string {
	part, of, isPatch := strings.Cut(strings.TrimPrefix(kind, "patch "), " of ")
	switch {
	case !isPatch:
		return kind
	case part == "status" || part == "resize":
		return "patch " + of + "/" + part
	}
	return "patch " + of
}

// AnswerCodes returns the answers of Refused.
func AnswerCodes() []int { return []int{403, NoRight, ByBudget, 409, 422, 429, 500, 0} }

// request is one write on its way to the server.
type request struct {
	object action.Object
	kind   string // one of WriteKinds
	dryRun bool
	// deletes says that the object is deleted, shown that later views show that from the answer.
	deletes, shown bool
	write          func() (action.Object, error)
}

// kindOfPatch returns the kind of write that a patch is.
func kindOfPatch(o action.Object, patch action.Patch) string {
	part := patch.Subresource
	meta, _ := patch.Body["metadata"].(map[string]any)
	switch {
	case part != "":
	case patch.Body["spec"] != nil:
		part = "spec"
	case patch.Body["revision"] != nil:
		part = "number"
	case meta["ownerReferences"] != nil:
		part = "owners"
	default:
		part = "metadata"
	}
	return "patch " + part + " of " + plainKind(o)
}

func plainKind(o action.Object) string {
	switch kind := KindOf(o); kind {
	case "Pod", "PersistentVolumeClaim", "ControllerRevision":
		return kind
	}
	return "Workload"
}

// covers reports whether this kind of write is refused at a moment since the beginning of the world.
func (f Refused) covers(kind string, since time.Duration) bool {
	return (f.Write == kind || f.Write == Right(kind)) && since >= f.From && since < f.Until
}

// refused returns the answer of a server that refuses this kind of write, nil when it does not.
func (t *attempt) refused(r request) error {
	since := t.world.now.Sub(t.world.begin)
	for _, f := range t.faults.Refused {
		if !f.covers(r.kind, since) {
			continue
		}
		t.quiet.count(t.world, r, f.Code)
		t.wasRefused = true
		switch resource, name := resourceOf(r.object), r.object.GetName(); f.Code {
		case NoRight:
			verb, _, _ := strings.Cut(r.kind, " ")
			return apierrors.NewForbidden(resource, name, fmt.Errorf("User %q cannot %s resource %q", OperatorActor, verb, resource.Resource)) //nolint:staticcheck // the server's words
		case ByBudget:
			return byBudget(r.object, errFault)
		case 409:
			return apierrors.NewConflict(resource, name, errFault)
		case 422:
			return apierrors.NewInvalid(r.object.GetObjectKind().GroupVersionKind().GroupKind(), name, nil)
		case 429:
			return apierrors.NewTooManyRequests(`admission webhook "limit" denied the request: refused`, 1)
		case 500:
			return apierrors.NewInternalError(errFault)
		case 0:
			return apierrors.NewTimeoutError("no answer", 0)
		default:
			return apierrors.NewForbidden(resource, name, errFault)
		}
	}
	return nil
}

// byBudget is a budget's refusal to write the object.
func byBudget(o action.Object, why error) error {
	answer := apierrors.NewForbidden(resourceOf(o), o.GetName(), why)
	answer.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause}}
	return answer
}

// Tracker returns what the operator that looks at the world remembers of refused writes.
func (v *View) Tracker() *refusals.Tracker {
	if v.operator == nil {
		return &refusals.Tracker{}
	}
	return v.operator.memory
}

// PlanFor says for which workload the operator that looks at the world plans.
func (v *View) PlanFor(workload action.Object) {
	if v.operator != nil {
		v.operator.workload = workload
	}
}

// Refusals returns what the server has refused to the operator that looks at the world, for its workload.
func (v *View) Refusals(workload action.Object, pods []*corev1.Pod, minReadySeconds int32) action.Refusals {
	v.PlanFor(workload)
	return v.Tracker().For(memory.KeyOf(workload), refusals.Observation{
		Now: v.world.now, Generation: workload.GetGeneration(),
		Available: func() int { return podstate.CountAvailable(pods, v.world.now, minReadySeconds) },
	})
}

// shorter returns the shorter of two times, of which 0 is none.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// dryRun sends dry runs if the action asks for them, as package execute does.
func (t *attempt) dryRun(a *action.Action) progress.Outcome {
	if !a.DryRun {
		return progress.Outcome{State: progress.Done}
	}
	if a.Verb == action.Create && len(a.Prerequisites) > 0 {
		_, err := t.request(request{object: a.Object, kind: "create " + plainKind(a.Object), dryRun: true, write: func() (action.Object, error) {
			return t.world.Create(OperatorActor, a.Object)
		}})
		t.letOthersGo()
		if found := t.world.Latest(a.Object); apierrors.IsAlreadyExists(err) && found != nil {
			return collision(a, err, found)
		}
		return progress.DryRunOutcome(err)
	}
	for _, patch := range a.DryRunPatches() {
		_, err := t.request(request{object: a.Object, kind: kindOfPatch(a.Object, patch), dryRun: true, write: func() (action.Object, error) {
			return t.world.Patch(OperatorActor, a.Object, patch)
		}})
		t.letOthersGo()
		if err != nil {
			return progress.DryRunOutcome(err)
		}
	}
	return progress.Outcome{State: progress.Done}
}

// report writes the status that follows from what became of the steps, unless that is deferred. It reports
// whether everything was written.
func (o *Operator) report(done action.Failures, out *Outcome) (written bool, wake time.Duration) {
	r, ok := o.planner.(Reporter)
	if !ok || out.Crashed {
		return !out.Crashed, 0
	}
	wanted, p := 0, action.Plan{Now: o.world.now, Refusals: o.refusals()}
	for _, step := range r.Report(done) {
		wanted += len(step.Actions)
		p.Add(step)
	}
	p = action.Admit(p)
	wrote, status := o.run(p.Steps, nil)
	out.add(status)
	return status.Done == wanted, shorter(p.RequeueAfter, wrote.RetryAfter)
}

// RefusedForLong returns faults of a server that refuses one or two kinds of writes for minutes, without other faults,
// so that retries can be counted.
func RefusedForLong(seed uint64) Faults {
	rng := rand.New(rand.NewPCG(seed, 77)) //nolint:gosec // a simulation needs no secrecy
	f := Faults{Seed: seed}
	for range 1 + rng.IntN(2) {
		from := time.Duration(rng.IntN(120)) * time.Second
		r := Refused{
			Write: WriteKinds()[rng.IntN(len(WriteKinds()))], Code: AnswerCodes()[rng.IntN(len(AnswerCodes()))],
			From: from, Until: from + time.Duration(1+rng.IntN(10))*time.Minute,
		}
		if r.Code == NoRight {
			r.Write = Right(r.Write)
		}
		f.Refused = append(f.Refused, r)
	}
	return f
}
