package node_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/plan/refusals"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/retries"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/plan"
)

// newPodObject returns the pod that is there now, as the server has it.
func (w *world) newPodObject() *corev1.Pod {
	return gen.Pod("web", gen.Ready(at(0)), gen.ReadinessGate(contract.KruisePodReady), gen.Change(func(o *corev1.Pod) {
		o.UID = w.pod
		o.Status.Conditions = append(o.Status.Conditions, corev1.PodCondition{Type: contract.KruisePodReady, Status: corev1.ConditionTrue})
	}))
}

// report is the status of the containers as the kubelet last wrote it.
func (w *world) report() {
	w.object.Status.ContainerStatuses = nil
	for _, name := range names() {
		run := w.newest(name)
		status := corev1.ContainerStatus{Name: name, ContainerID: run.ID, RestartCount: run.RestartCount}
		if run.Running {
			status.Ready = w.calm || w.rng.IntN(3) > 0
			status.State.Running = &corev1.ContainerStateRunning{}
		}
		w.object.Status.ContainerStatuses = append(w.object.Status.ContainerStatuses, status)
	}
}

// newManager is one that begins, on this machine or another one whose clock has another time.
func (w *world) newManager() {
	w.memory, w.met, w.pauses, w.tries = plan.NewMemory(), map[types.UID]time.Time{}, &refusals.Tracker{}, retries.Tries{}
	if w.clock == "" || w.rng.IntN(2) == 0 {
		w.next++
		w.clock, w.skew["manager"] = "machine-"+strconv.Itoa(w.next), w.anySkew()
	}
	w.note("a manager begins on %s", w.clock)
}

// manager is one pass over a request. It may end between any two writes.
func (w *world) manager(uid types.UID) {
	r := w.server[uid]
	if r == nil {
		return
	}
	s := plan.Snapshot{Request: r.DeepCopy(), Pod: w.object.DeepCopy(), Refusals: w.paused(r), Now: w.at("manager"), Clock: w.clock}
	if plan.Open(r) {
		s.FirstSeen, s.LastSign = w.memory.See(r, s.Now)
		w.meets(uid)
	} else {
		w.memory.Forget(keyOf(r))
	}
	todo := plan.Compute(s)
	done, crashed := w.carryOut(r, todo.Steps, w.act)
	if !crashed && !outdated(uid, &done) {
		w.finish(uid, todo.Status(action.Failures{}))
	}
}

// carryOut has the manager carry out steps for a request. It may end between any two of their actions.
func (w *world) carryOut(
	r *v1beta1.ContainerRecreateRequest, steps []action.Step, write func(types.UID, *action.Action) error,
) (done progress.Result, crashed bool) {
	pauses := w.pauses
	answer := func(a *action.Action) progress.Outcome {
		err := write(r.UID, a)
		if w.odds(20) {
			w.newManager()
			err = operator.ErrCrash
		}
		return progress.OutcomeOf(err)
	}
	now := func() time.Time { return w.at("manager") }
	done = progress.Run(steps, progress.InTurn(answer, now), progress.Options{Workload: memory.KeyOf(r), Refusals: pauses})
	return done, errors.Is(done.Err, operator.ErrCrash)
}

// outdated reports whether the request has changed since it was read: its status waits then.
func outdated(uid types.UID, done *progress.Result) bool {
	return slices.ContainsFunc(done.Outcomes, func(r progress.Outcome) bool {
		return r.Action.Object.GetUID() == uid && (r.State == progress.Done || r.State == progress.Stale)
	})
}

func keyOf(r *v1beta1.ContainerRecreateRequest) types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
}

// paused returns what the manager knows to be refused.
func (w *world) paused(r *v1beta1.ContainerRecreateRequest) action.Refusals {
	return w.pauses.For(memory.KeyOf(r), refusals.Observation{Now: w.at("manager")})
}

// ask returns the server's answer to a write of the manager. It judges that few are made while they are refused.
func (w *world) ask(r *v1beta1.ContainerRecreateRequest, kind string, a *action.Action) error {
	key := kind + " of " + r.Name + " for " + a.Reason
	switch {
	case w.refused[kind]:
		w.judgeTry(key, &w.tries)
		return errRefused
	case kind != "pod" && a.Object.GetResourceVersion() != r.ResourceVersion:
		return apierrors.NewConflict(schema.GroupResource{}, r.Name, errors.New("changed"))
	}
	w.tries.Taken(key)
	return nil
}

// judgeTry judges that a write is tried now and then while it is refused.
func (w *world) judgeTry(write string, tries *retries.Tries) {
	err := tries.Refused(write, w.now)
	w.must(err == nil, "%v", err)
}

// finish writes the manager's status.
func (w *world) finish(uid types.UID, status v1beta1.ContainerRecreateRequestStatus) {
	r := w.server[uid]
	if r == nil || equality.Semantic.DeepEqual(r.Status, status) {
		return
	}
	report := action.Report(r, w.paused(r), w.at("manager"))
	done, _ := w.carryOut(r, report.Steps, func(_ types.UID, a *action.Action) error { return w.ask(r, "status", a) })
	if done.Done(action.PatchStatus) == 0 {
		return
	}
	changed := r.DeepCopy()
	changed.Status = status
	if status.Phase == v1beta1.RecreateCompleted && r.Status.Phase != status.Phase {
		w.judgeEnd(changed)
		w.judgeResult(r, changed)
	}
	w.put(changed)
}

// act writes one action of the manager.
func (w *world) act(uid types.UID, a *action.Action) error {
	r := w.server[uid]
	switch a.Verb {
	case action.Delete:
		if err := w.ask(r, "metadata", a); err != nil {
			return err
		}
		w.must(w.now.Sub(w.over[uid]) >= time.Duration(*r.Spec.TTLSecondsAfterFinished)*time.Second, "%s is deleted before its time", r.Name)
		w.note("%s is deleted in its time", r.Name)
		w.remove(uid)
	case action.PatchStatus:
		if err := w.ask(r, "pod", a); err != nil {
			return err
		}
		c := a.Patches[0].Body["status"].(map[string]any)["conditions"].([]any)[0].(map[string]any)
		condition := podstate.Condition(w.object, contract.KruisePodReady)
		key := `"` + r.Namespace + "/" + r.Name + `"`
		if message := c["message"].(string); strings.Contains(message, key) && !strings.Contains(condition.Message, key) {
			w.holds[uid]++
			w.must(w.holds[uid] == 1, "%s takes the pod out of service twice", r.Name)
		} else if !strings.Contains(message, key) {
			w.judgeRelease(r)
		}
		condition.Status, condition.Message = corev1.ConditionStatus(c["status"].(string)), c["message"].(string)
		w.note("the pod is held by %s", condition.Message)
	default:
		if err := w.ask(r, "metadata", a); err != nil {
			return err
		}
		body, err := json.Marshal(a.Patches[0].Body)
		w.must(err == nil, "%v", err)
		w.note("metadata of %s: %s", r.Name, body)
		w.put(w.merge(r, body))
	}
	return nil
}
