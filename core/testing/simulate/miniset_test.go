package simulate_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
)

const (
	namespace      = "default"
	setName        = "web"
	containerLabel = "example.com/container-id"
)

// bugs are planted into the small planner to show that the world notices.
type bugs struct {
	budgetOffByOne  bool // updates one pod too many
	readyTooEarly   bool // takes the observed generation for the end of an update
	imageFirst      bool // changes the image before the pod is out of service
	writesForNought bool // writes labels that are there already
	forgetsScaling  bool // remembers in memory alone that a pod was made
}

// miniSet is a small ReplicaSet that updates images in place. Its one memory is that of a bug.
type miniSet struct {
	bugs bugs
	made int
}

func (m *miniSet) Restart() { m.made = 0 }

func (m *miniSet) Plan(view *operator.View, now time.Time, seed uint64) ([]action.Step, time.Duration) {
	set := cluster.Get[*appsv1.ReplicaSet](view.View, namespace, setName)
	if set == nil || set.DeletionTimestamp != nil {
		return nil, 0
	}
	var pods []podstate.State
	available := 0
	for _, pod := range cluster.ListOwned[*corev1.Pod](view.View, set.UID) {
		if s := podstate.Of(pod, now, set.Spec.MinReadySeconds); s.Active {
			pods = append(pods, s)
			if s.Available {
				available++
			}
		}
	}
	var plan action.Plan
	for i := range pods {
		plan.RequeueWithin(pods[i].AvailableIn)
	}
	plan.Add(m.refresh(pods, now))
	plan.Add(m.scale(set, pods, available, seed))
	if plan.Empty() {
		plan.Add(m.update(set, pods, available, now))
	}
	return plan.Steps, plan.RequeueAfter
}

// refresh puts pods into service whose containers are new.
func (m *miniSet) refresh(pods []podstate.State, now time.Time) action.Step {
	step := action.Step{Name: "refresh"}
	for _, s := range pods {
		c := action.NewPodChange(s.Pod, metav1.NewTime(now))
		if s.Assigned && m.renewed(s.Pod) {
			c.SetCondition(contract.InPlaceUpdateReady, corev1.ConditionTrue, "", "")
		}
		switch {
		case !c.Empty():
			step.Actions = append(step.Actions, action.Action{Verb: action.PatchStatus, Object: s.Pod, Independent: true, Patches: c.Patches(), Reason: "Renewed"})
		case m.bugs.writesForNought:
			step.Actions = append(step.Actions, action.Action{
				Verb: action.PatchMetadata, Object: s.Pod, Independent: true, Reason: "Nought",
				Patches: []action.Patch{{Body: map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": setName}}}}},
			})
		}
	}
	return step
}

func (m *miniSet) renewed(pod *corev1.Pod) bool {
	before, updated := pod.Annotations[containerLabel]
	if !updated {
		return true
	}
	if m.bugs.readyTooEarly {
		return pod.Status.ObservedGeneration == pod.Generation
	}
	s := pod.Status.ContainerStatuses
	return len(s) == 1 && s[0].ContainerID != before && pod.Status.ObservedGeneration == pod.Generation &&
		s[0].Image == pod.Spec.Containers[0].Image
}

func (m *miniSet) scale(set *appsv1.ReplicaSet, pods []podstate.State, available int, seed uint64) action.Step {
	step := action.Step{Name: "scale", SlowStart: true}
	rng := rand.New(rand.NewPCG(seed, 3))
	have := len(pods)
	if m.bugs.forgetsScaling {
		have = max(have, m.made)
	}
	for ; have < int(*set.Spec.Replicas); have++ {
		step.Actions = append(step.Actions, action.Action{Verb: action.Create, Object: newPod(set, rng), Independent: true, Reason: "ScaleOut"})
	}
	m.made = have
	surplus, spare := len(pods)-int(*set.Spec.Replicas), available-int(*set.Spec.Replicas)
	for _, wantAvailable := range []bool{false, true} {
		for _, s := range pods {
			if surplus <= 0 || s.Available != wantAvailable || s.Available && spare <= 0 {
				continue
			}
			surplus--
			if s.Available {
				spare--
			}
			step.Actions = append(step.Actions, action.Action{Verb: action.Delete, Object: s.Pod, Independent: true, Reason: "ScaleIn"})
			m.made--
		}
	}
	return step
}

// update changes images, one available pod at a time. Pods out of service cost nothing.
func (m *miniSet) update(set *appsv1.ReplicaSet, pods []podstate.State, available int, now time.Time) action.Step {
	step := action.Step{Name: "update"}
	budget := available - int(*set.Spec.Replicas) + 1
	if m.bugs.budgetOffByOne {
		budget++
	}
	image := set.Spec.Template.Spec.Containers[0].Image
	for _, s := range pods {
		if s.Pod.Spec.Containers[0].Image == image || !s.Assigned || s.Available && budget <= 0 || len(s.Pod.Status.ContainerStatuses) == 0 {
			continue
		}
		if s.Available {
			budget--
		}
		c := action.NewPodChange(s.Pod, metav1.NewTime(now))
		if !m.bugs.imageFirst {
			c.SetCondition(contract.InPlaceUpdateReady, corev1.ConditionFalse, "StartInPlaceUpdate", "")
		}
		c.SetAnnotation(containerLabel, s.Pod.Status.ContainerStatuses[0].ContainerID)
		if m.bugs.imageFirst || podstate.UnreadyIn(s.Pod, c.Condition(contract.InPlaceUpdateReady), now) == 0 {
			c.SetImage("main", image)
		}
		if c.Empty() {
			continue
		}
		step.Actions = append(step.Actions, action.Action{
			Verb: action.UpdateInPlace, Object: s.Pod, Independent: true, Patches: c.Patches(), Reason: "Update", Message: image,
		})
	}
	return step
}

func newPod(set *appsv1.ReplicaSet, rng *rand.Rand) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%05x", set.Name, rng.IntN(1<<20)), Namespace: set.Namespace, Labels: map[string]string{"app": set.Name},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))},
		},
		Spec: corev1.PodSpec{
			Containers:     set.Spec.Template.Spec.Containers,
			ReadinessGates: []corev1.PodReadinessGate{{ConditionType: contract.InPlaceUpdateReady}},
		},
	}
}

func newSet(replicas int32, image string) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: setName, Namespace: namespace, UID: types.UID("set")},
		Spec: appsv1.ReplicaSetSpec{Replicas: &replicas, Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
		}},
	}
}

// newWorld has a set of three pods at v1 that soon wants v2, and all checks.
func newWorld(options cluster.Options, replicas int32) *simulate.World {
	w := simulate.New(options, newSet(replicas, "app:v1"))
	w.CheckInPlace()
	w.CheckOwnership("set")
	w.Limit("pods", func(v *cluster.View) int { return len(v.Active("set")) }, wantedReplicas)
	w.Limit("unavailable pods",
		func(v *cluster.View) int { return wantedReplicas(v) - len(v.Available("set", 0)) },
		func(*cluster.View) int { return 1 })
	return w
}

func wantedReplicas(v *cluster.View) int {
	return int(*cluster.Get[*appsv1.ReplicaSet](v, namespace, setName).Spec.Replicas)
}

func wants(w *simulate.World, image string) {
	if err := cluster.Change(w, cluster.UserActor, "", newSet(0, ""), func(s *appsv1.ReplicaSet) {
		s.Spec.Template.Spec.Containers[0].Image = image
	}); err != nil {
		panic(err)
	}
}
