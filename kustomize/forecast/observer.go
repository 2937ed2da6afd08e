package forecast

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/nodes"

	"github.com/flotilla-project/flotilla/kustomize/workload"
)

// together is how far apart updates may begin that are one batch.
const together = time.Second

// observer counts the changes of the pods of a workload.
type observer struct {
	world *nodes.World
	scene *Scene
	began time.Time
	uid   types.UID

	minReady  int32
	available map[types.UID]bool
	pods      map[types.UID]bool

	started, lowest, most   int
	inPlace, deleted, added map[types.UID]bool
	last                    time.Time
	batches                 []Batch
	end                     time.Time
	waits                   waits
	budgets                 []*watchedBudget
}

// observe follows the pods of a set from now on.
func observe(w *nodes.World, scene *Scene, set action.Object) *observer {
	o := &observer{
		world:     w,
		scene:     scene,
		began:     w.Now(),
		end:       w.Now(),
		uid:       set.GetUID(),
		minReady:  MinReadySeconds(set),
		available: map[types.UID]bool{},
		pods:      map[types.UID]bool{},
		inPlace:   map[types.UID]bool{},
		deleted:   map[types.UID]bool{},
		added:     map[types.UID]bool{},
	}
	for _, pod := range w.View(nil).Owned(o.uid) {
		o.count(pod)
	}
	o.started = len(o.available)
	o.lowest = len(o.available)
	o.most = len(o.pods)
	o.budgets = watchBudgets(scene, w.View(nil).Owned(o.uid))
	w.OnEvent(o.see)
	return o
}

// see takes an event in.
func (o *observer) see(e cluster.Event) {
	if e.Kind == o.scene.Kind.Name && e.Object.GetUID() == o.uid {
		o.minReady = MinReadySeconds(e.Object)
		if set, err := o.scene.untyped(e.Object); err == nil {
			o.waits.see(set, e.Time)
		}
		return
	}
	pod, isPod := e.Object.(*corev1.Pod)
	if !isPod || cluster.ControllerOf(pod) != o.uid {
		return
	}
	if e.Actor == cluster.OperatorActor {
		o.act(e, pod)
	}
	if e.Type == cluster.Deleted {
		delete(o.available, pod.UID)
		delete(o.pods, pod.UID)
	} else {
		o.count(pod)
	}
	o.lowest = min(o.lowest, len(o.available))
	o.most = max(o.most, len(o.pods))
	for _, b := range o.budgets {
		b.see(pod, e.Type == cluster.Deleted)
	}
	if e.Actor != cluster.AgentActor { // no rollout waits for the reports of agents
		o.end = e.Time
	}
}

// count notes whether the pod is there and available, now and once it has been ready for long enough.
func (o *observer) count(pod *corev1.Pod) {
	state := podstate.Of(pod, o.world.Now(), o.minReady)
	set(o.pods, pod.UID, state.Active)
	set(o.available, pod.UID, state.Active && state.Available)
	ready := podstate.Condition(pod, corev1.PodReady)
	if !state.Active || state.Available || ready == nil || ready.Status != corev1.ConditionTrue {
		return
	}
	wait := ready.LastTransitionTime.Add(time.Duration(o.minReady) * time.Second).Sub(o.world.Now())
	if wait <= 0 { // something else keeps the pod out of service, and its end is a change of the pod
		return
	}
	key, uid := cluster.KeyOf(pod), pod.UID
	o.world.After(wait, func() {
		if pod := o.world.Pod(key, uid); pod != nil {
			o.count(pod)
			o.end = o.world.Now()
		}
	})
}

func set(all map[types.UID]bool, uid types.UID, is bool) {
	if is {
		all[uid] = true
	} else {
		delete(all, uid)
	}
}

// act counts a change of a pod by the operator.
func (o *observer) act(e cluster.Event, pod *corev1.Pod) {
	old, _ := e.Old.(*corev1.Pod)
	switch {
	case e.Type == cluster.Added:
		o.added[pod.UID] = true
		o.batch(e.Time).Added++
	case old == nil:
	case (pod.DeletionTimestamp != nil && old.DeletionTimestamp == nil || e.Type == cluster.Deleted) && !o.deleted[pod.UID]:
		o.deleted[pod.UID] = true
		b := o.batch(e.Time)
		b.Recreated++
		b.Pods = append(b.Pods, pod.Name)
	case workload.RevisionOf(pod) != workload.RevisionOf(old) && !o.inPlace[pod.UID]:
		o.inPlace[pod.UID] = true
		b := o.batch(e.Time)
		b.InPlace++
		b.Pods = append(b.Pods, pod.Name)
	}
}

// batch returns the batch that is under way at a moment, or a new one.
func (o *observer) batch(now time.Time) *Batch {
	if len(o.batches) == 0 || now.Sub(o.last) > together {
		o.batches = append(o.batches, Batch{Seconds: seconds(now.Sub(o.began))})
	}
	o.last = now
	return &o.batches[len(o.batches)-1]
}

// report puts the numbers into a forecast.
func (o *observer) report(f *Report) {
	f.Seconds = seconds(o.end.Sub(o.began))
	f.Batches = o.batches
	f.InPlace = len(o.inPlace)
	f.Available = o.started
	f.LowestAvailable = o.lowest
	f.MostPods = o.most
	f.Recreated = min(len(o.deleted), len(o.added))
	f.Added = len(o.added) - f.Recreated
	f.Removed = len(o.deleted) - f.Recreated
	f.Waits = o.waits.list(o.began, o.end)
	for _, b := range o.budgets {
		f.Budgets = append(f.Budgets, b.Budget)
	}
}

// allowsEviction reports whether no budget forbids the eviction of a pod.
func (o *observer) allowsEviction(pod *corev1.Pod) bool {
	for _, b := range o.budgets {
		if b.matches(pod) && b.healthy() <= b.Desired {
			return false
		}
	}
	return true
}
