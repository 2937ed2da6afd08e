package simulate

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/action"
	"github.com/flotilla-project/flotilla/core/podstate"
	"github.com/flotilla-project/flotilla/core/refusals"
)

// Refused is a kind of write that the server refuses for a while.
type Refused struct {
	// Write is the kind of write, one of WriteKinds.
	Write string
	// Code is the answer's status code, 0 for no answer: the write may be done or not.
	Code int
	// From and Until are moments since the beginning of the world.
	From, Until time.Duration
}

// WriteKinds are the kinds of writes that plans want; those of the workload's own kind are of a Workload.
func WriteKinds() []string {
	return []string{
		"create Pod", "delete Pod", "patch metadata of Pod", "patch spec of Pod", "patch status of Pod", "patch resize of Pod",
		"create PersistentVolumeClaim", "delete PersistentVolumeClaim", "patch metadata of PersistentVolumeClaim",
		"create ControllerRevision", "delete ControllerRevision", "patch status of Workload",
	}
}

// AnswerCodes are the answers of Refused.
func AnswerCodes() []int { return []int{403, 409, 422, 429, 500, 0} }

// request is one write on its way to the server.
type request struct {
	object action.Object
	kind   string // one of WriteKinds
	target string // of a create, as action.Target has it: made-up names are one
	dryRun bool
	write  func() (action.Object, error)
}

// kindOfPatch is the kind of write that a patch is.
func kindOfPatch(o action.Object, patch action.Patch) string {
	part := patch.Subresource
	if part == "" {
		part = "metadata"
		if _, ok := patch.Body["spec"]; ok {
			part = "spec"
		}
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

// refused is the answer of a server that refuses this kind of write, nil when it does not.
func (o *Operator) refused(r request) error {
	since := o.world.now.Sub(o.world.begin)
	for _, f := range o.faults.Refused {
		if f.Write != r.kind || since < f.From || since >= f.Until {
			continue
		}
		o.quiet.count(o.world, r, f.Code == http.StatusConflict)
		switch resource, name := resourceOf(r.object), r.object.GetName(); f.Code {
		case 409:
			return apierrors.NewConflict(resource, name, errFault)
		case 422:
			return apierrors.NewInvalid(r.object.GetObjectKind().GroupVersionKind().GroupKind(), name, nil)
		case 429:
			return apierrors.NewTooManyRequests("refused", 1)
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

// memoryKey is the name under which the operator's memory has the one workload of the world.
var memoryKey = types.NamespacedName{Name: "workload"}

// Refusals are what the server has refused to the operator that looks at the world, for its workload.
func (v *View) Refusals(workload action.Object, pods []*corev1.Pod, minReadySeconds int32) action.Refusals {
	if v.operator == nil {
		return nil
	}
	v.operator.generation = workload.GetGeneration()
	return v.operator.memory.Of(memoryKey, refusals.Moment{
		Now: v.world.now, Generation: workload.GetGeneration(),
		Available: func() int { return podstate.CountAvailable(pods, v.world.now, minReadySeconds) },
	})
}

// remember records what became of an action, in the way of package execute.
func (o *Operator) remember(a *action.Action, err error, late bool) {
	if err == nil {
		o.memory.Done(memoryKey, a)
		return
	}
	switch {
	case errors.Is(err, ErrCrash):
		return
	case errors.Is(err, errOutdated): // nobody was asked
		o.retry = shorter(o.retry, time.Second)
		return
	}
	text, mounted := a.Unnamed(err.Error()), errors.Is(err, errMounted)
	f := refusals.Failure{Message: text, Late: late, Unclear: apierrors.IsTimeout(err) || apierrors.IsInternalError(err), Conflict: isStale(err), Alone: o.nameTaken(a, err) || mounted}
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		f.RetryAfter = time.Duration(seconds) * time.Second
	}
	pause, isRefused := o.memory.Failed(memoryKey, o.generation, a, f, o.world.now)
	if isRefused && !mounted {
		o.result.Tell(a.Verb, text)
	}
	o.retry = shorter(o.retry, pause)
}

// shorter is the shorter of two times, of which 0 is none.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// rehearse sends dry runs where the action asks for them, in the way of package execute.
func (o *Operator) rehearse(a *action.Action) error {
	if !a.Rehearse {
		return nil
	}
	if a.Verb == action.Create && len(a.First) > 0 {
		_, err := o.request(request{object: a.Object, kind: "create " + plainKind(a.Object), target: a.Target(), dryRun: true, write: func() (action.Object, error) {
			return o.world.Create(OperatorActor, a.Object)
		}})
		return err
	}
	for _, patch := range a.Trials() {
		_, err := o.request(request{object: a.Object, kind: kindOfPatch(a.Object, patch), dryRun: true, write: func() (action.Object, error) {
			return o.world.Patch(OperatorActor, a.Object, patch)
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

// report writes the status that follows from what became of the steps, unless that is refused for now.
func (o *Operator) report(out *Outcome) (wake time.Duration) {
	r, ok := o.planner.(Reporter)
	if !ok || out.Crashed {
		return 0
	}
	p := action.Plan{Now: o.world.now, Refusals: o.memory.Of(memoryKey, refusals.Moment{Now: o.world.now, Generation: o.generation})}
	for _, step := range r.Report(o.result) {
		p.Add(step)
	}
	status := o.Run(p.Steps)
	out.Done += status.Done
	out.Stale += status.Stale
	out.Blocked += status.Blocked
	out.Failed += status.Failed
	out.Crashed = status.Crashed
	return p.WakeAfter
}

// RefusedForLong are faults of a server that refuses one or two kinds of writes for minutes, and nothing
// else: what comes of it can then be counted.
func RefusedForLong(seed uint64) Faults {
	rng := rand.New(rand.NewPCG(seed, 77)) //nolint:gosec // a simulation needs no secrecy
	f := Faults{Seed: seed}
	for range 1 + rng.IntN(2) {
		from := time.Duration(rng.IntN(120)) * time.Second
		f.Refused = append(f.Refused, Refused{
			Write: WriteKinds()[rng.IntN(len(WriteKinds()))], Code: AnswerCodes()[rng.IntN(len(AnswerCodes()))],
			From: from, Until: from + time.Duration(1+rng.IntN(10))*time.Minute,
		})
	}
	return f
}
