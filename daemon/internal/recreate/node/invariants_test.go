package node_test

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/seeds"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

// watch shows the agent the next event.
func (w *world) watch() {
	if len(w.events) == 0 {
		return
	}
	next := w.events[0]
	w.events = w.events[1:]
	if next.object == nil {
		delete(w.cache, next.uid)
		return
	}
	w.cache[next.uid] = next.object
}

func (w *world) uids() []types.UID {
	var uids []types.UID
	for uid := range w.server {
		uids = append(uids, uid)
	}
	slices.Sort(uids)
	w.rng.Shuffle(len(uids), func(i, j int) { uids[i], uids[j] = uids[j], uids[i] })
	return uids
}

// manager does its part for one request: the end of requests whose pod is gone, the deadline, the snapshot
// and the grace.
func (w *world) manager() {
	for _, uid := range w.uids() {
		r := w.server[uid]
		if r == nil || r.Status.Phase == v1beta1.RecreateCompleted {
			continue
		}
		r = r.DeepCopy()
		switch {
		case types.UID(r.Labels[v1beta1.PodUIDLabel]) != w.pod:
			r.Status.Phase, r.Status.Message = v1beta1.RecreateCompleted, "pod has gone"
			w.put(r)
			return
		case !w.calm && w.rng.IntN(40) == 0:
			r.Status.Phase, r.Status.Message = v1beta1.RecreateCompleted, "recreating has exceeded the activeDeadlineSeconds"
			w.note("%s has exceeded its deadline", r.Name)
			w.put(r)
			return
		case r.Status.Phase == v1beta1.RecreateRecreating:
			if w.observe(r) {
				w.put(r)
				return
			}
		}
	}
}

func (w *world) observe(r *v1beta1.ContainerRecreateRequest) bool {
	before := r.DeepCopy()
	if r.Spec.Strategy.UnreadyGracePeriodSeconds != nil {
		meta.SetStatusCondition(&r.Status.Conditions, metav1.Condition{Type: v1beta1.PreRecreateGrace, Status: metav1.ConditionTrue, Reason: v1beta1.PreRecreateGrace})
	}
	var snapshot []v1beta1.ContainerStatusSnapshot
	for _, c := range r.Spec.Containers {
		if run := w.newest(c.Name); run.Running && run.ID != c.StatusContext.ContainerID {
			snapshot = append(snapshot, v1beta1.ContainerStatusSnapshot{
				Name: c.Name, Ready: w.calm || w.rng.IntN(3) > 0, RestartCount: run.RestartCount, ContainerID: run.ID,
			})
		}
	}
	r.Status.ContainerStatusSnapshot = snapshot
	return len(before.Status.Conditions) != len(r.Status.Conditions) || !slices.Equal(before.Status.ContainerStatusSnapshot, snapshot)
}

func (w *world) removeOne() {
	for _, uid := range w.uids() {
		if w.server[uid] != nil {
			w.note("%s is deleted", w.server[uid].Name)
			delete(w.server, uid)
			w.events = append(w.events, event{uid: uid})
			return
		}
	}
}

func (w *world) pods() []types.UID {
	var pods []types.UID
	for pod := range w.runs {
		pods = append(pods, pod)
	}
	slices.Sort(pods)
	return pods
}

func (w *world) step() {
	w.now = w.now.Add(time.Duration(w.rng.IntN(1500)) * time.Millisecond)
	switch n := w.rng.IntN(100); {
	case n < 30:
		pods := w.pods()
		w.agent(pods[w.rng.IntN(len(pods))])
	case n < 55:
		for range 1 + w.rng.IntN(3) {
			w.watch()
		}
	case n < 65:
		w.kubelet()
	case n < 75:
		w.runtime()
	case n < 86:
		w.manager()
	case n < 92:
		w.request()
	case n < 95:
		w.crash()
	case n < 97:
		if run := w.newest(w.names()[w.rng.IntN(3)]); run.Running {
			w.end(run, "by itself")
		}
	case n < 98:
		w.removeOne()
	default:
		if w.rng.IntN(4) == 0 {
			w.replacePod()
		}
	}
}

// settle lets everybody work without faults until every request is complete.
func (w *world) settle() {
	w.calm = true
	for range 4000 {
		w.now = w.now.Add(500 * time.Millisecond)
		w.list()
		w.agent(w.pod)
		w.runtime()
		w.kubelet()
		w.manager()
		open := 0
		for _, r := range w.server {
			if r.Status.Phase != v1beta1.RecreateCompleted {
				open++
			}
		}
		if open == 0 {
			return
		}
	}
	w.must(false, "requests are stuck")
}

func play(t *testing.T, seed uint64, steps int) {
	t.Helper()
	w := newWorld(t, seed)
	for range steps {
		w.step()
	}
	w.settle()
}

// Whatever the order of events, crashes and lost answers: a container is stopped once for a request and
// only when that is written; only what was named, only in the pod that was meant; one request at a time;
// and all come to an end.
func TestInvariants(t *testing.T) {
	seeds.Each(t, 400, func(t *testing.T, seed uint64) {
		t.Helper()
		play(t, seed, 250)
	})
}

func FuzzInvariants(f *testing.F) {
	f.Add(uint64(1), uint16(500))
	f.Fuzz(func(t *testing.T, seed uint64, steps uint16) { play(t, seed, int(steps%3000)) })
}
