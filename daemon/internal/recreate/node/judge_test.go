package node_test

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podstate"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/stops"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/node"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/plan"
)

// judgeStates judges a write of the agent.
func (w *world) judgeStates(old, now *v1beta1.ContainerRecreateRequest) {
	if old.Status.Phase == v1beta1.RecreateCompleted {
		if !equality.Semantic.DeepEqual(old.Status, now.Status) {
			w.records[now.UID]++
		}
		w.must(w.records[now.UID] <= 1, "%s is complete and was written to again", now.Name)
	}
	mine := types.UID(now.Labels[v1beta1.PodUIDLabel]) == w.pod
	for i := range now.Status.ContainerRecreateStates {
		was := v1beta1.ContainerRecreateState{}
		if i < len(old.Status.ContainerRecreateStates) {
			was = old.Status.ContainerRecreateStates[i]
		}
		w.judgeState(old, now, i, was, mine)
	}
	if now.Status.Phase == v1beta1.RecreateCompleted && old.Status.Phase != now.Status.Phase {
		w.over[now.UID] = w.now
		w.judgeResult(old, now)
	}
	for uid, other := range w.server {
		both := other.Status.Phase == v1beta1.RecreateRecreating && now.Status.Phase == v1beta1.RecreateRecreating
		same := other.Labels[v1beta1.PodUIDLabel] == now.Labels[v1beta1.PodUIDLabel]
		w.must(uid == now.UID || !both || !same || other.DeletionTimestamp != nil, "%s and %s at a time", other.Name, now.Name)
	}
}

// judgeState judges what is written about one container.
func (w *world) judgeState(old, now *v1beta1.ContainerRecreateRequest, i int, was v1beta1.ContainerRecreateState, mine bool) {
	state, spec := now.Status.ContainerRecreateStates[i], now.Spec.Containers[i]
	key := string(now.UID) + "/" + state.Name
	if old.Status.Phase != v1beta1.RecreateRecreating && old.Status.Phase != v1beta1.RecreateCompleted && mine {
		w.picked[key] = w.newest(state.Name).ID
		if run := w.newest(state.Name); run.Exited || !now.Spec.Strategy.ForceRecreate {
			w.picked[key] = spec.StatusContext.ContainerID
		}
	}
	if mine && state.Phase == v1beta1.RecreateSucceeded && was.Phase != state.Phase {
		w.must(w.newest(state.Name).ID != w.picked[key], "%s of %s has succeeded and runs as before", state.Name, now.Name)
	}
	if state.IsKilled && state.ContainerID != "" && !was.IsKilled && spec.PreStop != nil {
		stop := w.known()[state.ContainerID]
		w.must(stop.Stage == node.AfterHook && stop.Request == now.UID, "%s of %s is marked before its hook is over", state.Name, now.Name)
	}
}

// judgeStop judges the agent telling the runtime, or beginning a hook. before are the stops of the pod until then.
func (w *world) judgeStop(key types.NamespacedName, before map[string]stops.Stop, id string, now stops.Stop) {
	hook, was := now.Stage == node.InHook, before[id]
	goesOn := was.Stage == node.AfterHook && was.Request == now.Request
	stored := w.server[now.Request]
	w.must(stored != nil && stored.DeletionTimestamp == nil, "%s is stopped for nobody", id)
	w.must(stored.Status.Phase != v1beta1.RecreateCompleted || goesOn && !hook, "%s is stopped for a request that is over", id)
	w.must(!goesOn || w.object.DeletionTimestamp == nil, "%s is stopped in a pod that is going", id)
	w.must(stored.Labels[v1beta1.PodUIDLabel] == key.Name, "%s is stopped for a request of another pod", id)
	name := ""
	for _, run := range w.runs[types.UID(key.Name)] {
		if run.ID == id {
			name = run.Name
		}
		other, begun := before[run.ID]
		this := run.ID == id
		w.must(!begun || other.Stage == node.Ended || this && goesOn, "%s is stopped beside %s", id, run.ID)
		w.must(!begun || !this || other.Request != now.Request || goesOn, "%s is stopped twice", run.ID)
	}
	w.must(name != "", "%s is no container of the pod that was meant", id)
	want := v1beta1.ContainerRecreateState{Name: name, Phase: v1beta1.RecreateRecreating, IsKilled: true, ContainerID: id}
	if hook {
		want = v1beta1.ContainerRecreateState{Name: name, Phase: v1beta1.RecreatePending, ContainerID: id}
	}
	w.must(slices.Contains(stored.Status.ContainerRecreateStates, want), "%s is stopped before that is written", id)
	named := false
	for _, c := range stored.Spec.Containers {
		named = named || c.Name == name
		if c.Name == name && !stored.Spec.Strategy.ForceRecreate {
			w.must(c.StatusContext.ContainerID == id, "%s had restarted by itself", name)
		}
	}
	w.must(named, "%s was not asked for", name)
}

// meets notes when a manager first saw a request.
func (w *world) meets(uid types.UID) {
	if _, known := w.first[uid]; !known {
		w.first[uid] = w.now
	}
	if _, known := w.met[uid]; !known {
		w.met[uid] = w.now
	}
}

// judgeResult judges the conditions that are written with the end of a request.
func (w *world) judgeResult(old, now *v1beta1.ContainerRecreateRequest) {
	missed := slices.ContainsFunc(now.Status.ContainerRecreateStates, func(s v1beta1.ContainerRecreateState) bool { return s.Phase != v1beta1.RecreateSucceeded })
	missed = missed || len(now.Status.ContainerRecreateStates) < len(now.Spec.Containers)
	complete := meta.IsStatusConditionTrue(now.Status.Conditions, v1beta1.RecreateComplete)
	failed := meta.IsStatusConditionTrue(now.Status.Conditions, v1beta1.RecreateNotComplete)
	w.must(complete != failed, "%s has ended with conditions %v", now.Name, now.Status.Conditions)
	w.must(!complete || !missed, "%s is complete with states %v", now.Name, now.Status.ContainerRecreateStates)
	for _, c := range old.Status.Conditions {
		kept := meta.FindStatusCondition(now.Status.Conditions, c.Type)
		w.must(kept != nil && kept.Status == c.Status && kept.Reason == c.Reason && kept.LastTransitionTime.Unix() == c.LastTransitionTime.Unix(),
			"%s has lost condition %s with its end", now.Name, c.Type)
	}
}

// judgeEnd judges a request that the manager completes. No clock of the world counts but the true one.
func (w *world) judgeEnd(r *v1beta1.ContainerRecreateRequest) {
	w.note("%s ends: %s", r.Name, r.Status.Message)
	w.over[r.UID] = w.now
	switch r.Status.Message {
	case plan.MessageDeadline:
		w.must(w.now.Sub(w.first[r.UID]) >= time.Duration(*r.Spec.ActiveDeadlineSeconds)*time.Second, "%s ends before its deadline", r.Name)
	case plan.MessageNoAnswer:
		w.must(w.now.Sub(w.heard[r.UID]) >= plan.NoAnswer, "%s ends, and its agent was heard of", r.Name)
		w.must(!w.calm || w.away || w.now.Sub(w.calmed) < plan.NoAnswer, "%s ends, and its agent is there", r.Name)
	case plan.MessagePodGone:
		w.must(w.object.DeletionTimestamp != nil || r.Labels[v1beta1.PodUIDLabel] != string(w.pod), "%s ends, and its pod is there", r.Name)
		return
	}
	for id, stop := range w.known() {
		if stop.Request == r.UID && stop.Unsent() {
			w.owed[r.UID] = id
		}
	}
}

// judgeLate judges that no open request is past a deadline that this manager has watched from the beginning, nor
// past the minute after refusals of its end.
func (w *world) judgeLate() {
	for uid, since := range w.met {
		r := w.server[uid]
		if r == nil || !plan.Open(r) || r.Spec.ActiveDeadlineSeconds == nil {
			continue
		}
		due := since.Add(time.Duration(*r.Spec.ActiveDeadlineSeconds+1) * time.Second)
		if soon := w.calmed.Add(time.Minute); w.tries.Waits("status of "+r.Name+" for Status") && due.Before(soon) {
			due = soon
		}
		w.must(w.now.Before(due), "%s outlives its deadline", r.Name)
	}
}

// judgeHolds judges that whoever holds the pod is there to let go of it.
func (w *world) judgeHolds() {
	var keys []struct{ Key string }
	message := podstate.Condition(w.object, contract.KruisePodReady).Message
	w.must(message == "" || json.Unmarshal([]byte(message), &keys) == nil, "%s", message)
	for _, held := range keys {
		r := w.server[types.UID(strings.TrimPrefix(held.Key, "default/"))]
		w.must(r != nil && slices.Contains(r.Finalizers, v1beta1.UnreadyAcquiredFinalizer), "nobody lets go of %s", held.Key)
	}
}

// judgeRelease judges that the pod comes back into service when what was begun for the request has ended. The agent of a
// node that has gone ends nothing.
func (w *world) judgeRelease(r *v1beta1.ContainerRecreateRequest) {
	for id, uid := range w.stopping {
		for _, run := range w.runs[w.pod] {
			late := w.now.Sub(w.over[uid]) >= 30*time.Second
			w.must(uid != r.UID || run.ID != id || !run.Running || late, "the pod serves again while %s is being stopped for %s", id, r.Name)
		}
	}
}

// judgeRest judges the world when all requests are over.
func (w *world) judgeRest() {
	w.must(podstate.Condition(w.object, contract.KruisePodReady).Status == corev1.ConditionTrue, "the pod is held for ever")
	for uid, id := range w.owed {
		r := w.server[uid]
		for _, run := range w.runs[w.pod] {
			if run.ID != id {
				continue
			}
			w.must(run.Exited, "the stop of %s was begun for %s and not ended", id, r.Name)
			w.must(slices.ContainsFunc(r.Status.ContainerRecreateStates, func(s v1beta1.ContainerRecreateState) bool {
				return s.Name == run.Name && s.IsKilled
			}), "%s does not tell of the stop of %s", r.Name, id)
		}
	}
}
