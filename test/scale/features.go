package scale

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	budget "github.com/flotilla-project/flotilla/budget/api/v1beta1"
	cloneset "github.com/flotilla-project/flotilla/cloneset/api/v1beta1"

	"github.com/flotilla-project/flotilla/core/contract"

	daemon "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	daemonset "github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
	spread "github.com/flotilla-project/flotilla/spread/api/v1beta1"
	statefulset "github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// feature is an operator that is measured, with the controller of the most similar built-in kind.
type feature struct {
	addToScheme  func(*runtime.Scheme) error
	own, builtIn func() workload
	perNode      bool // every node runs one pod
	// parts are what is measured of a feature whose kinds are no workloads, in place of loads on own and builtIn.
	parts func(*bench) []part
	// settled waits until the operator has made what it makes for nodes, after which it has nothing to do.
	settled func(*bench, context.Context) error
	// mark is the label that the operator takes from a namespace some time after its last object is gone; empty for none.
	mark string
	// needs names the feature whose definitions it needs, but not its programs.
	needs string
}

// part is one of what a round measures.
type part struct {
	name string
	run  func(context.Context) ([]Row, error)
	// apart is true for what the gate leaves out, and uncounted for what Counts leaves out, too.
	apart, uncounted bool
}

func features() map[string]feature {
	return map[string]feature{
		"budget":      {addToScheme: budget.AddToScheme, parts: (*bench).budgetParts, mark: budget.NamespaceLabel},
		"cloneset":    {addToScheme: cloneset.AddToScheme, own: cloneSet, builtIn: replicaSet},
		"statefulset": {addToScheme: statefulset.AddToScheme, own: statefulSet, builtIn: builtInStatefulSet},
		"daemon":      {addToScheme: daemon.AddToScheme, parts: (*bench).daemonParts, settled: (*bench).firstNodeImages},
		"daemonset":   {addToScheme: daemonset.AddToScheme, own: daemonSet, builtIn: builtInDaemonSet, perNode: true},
		"jobs":        {addToScheme: addJobs, parts: (*bench).jobParts, perNode: true, needs: "daemon"},
		"spread":      {addToScheme: spread.AddToScheme, parts: (*bench).spreadParts, mark: spread.NamespaceLabel},
	}
}

// Features returns the names of the features whose operators can be measured, sorted.
func Features() []string { return slices.Sorted(maps.Keys(features())) }

// workload is an object on which loads run. Its functions use the state of the object at the time of the call.
type workload struct {
	client.Object
	kind       string
	controller string // of a built-in kind: the account in the controller manager
	scale      func(replicas int32)
	template   func() *corev1.PodTemplateSpec
	inPlace    bool        // the kind changes the image of its pods in place, a tenth of them at a time
	recreates  bool        // so many at a time it recreates pods for what cannot change in place
	ready      func() bool // by its status
	// countsReady is the field that counts the ready pods.
	countsReady string
}

// parts returns what is measured of the feature.
func (b *bench) parts() []part {
	if parts := features()[b.Feature].parts; parts != nil {
		return parts(b)
	}
	return []part{{name: "built-in", run: b.beside, uncounted: true}, {name: b.Feature, run: b.own}}
}

// beside measures the built-in kind.
func (b *bench) beside(ctx context.Context) ([]Row, error) {
	w := features()[b.Feature].builtIn()
	return b.loads(ctx, w, controller{b.controllerManager, w.controller})
}

// own measures the feature's kind.
func (b *bench) own(ctx context.Context) ([]Row, error) {
	return b.loads(ctx, features()[b.Feature].own(), b.ofOperator(""))
}

// loads measures the changes of a workload, and an edit in the middle of one.
func (b *bench) loads(ctx context.Context, w workload, who controller) ([]Row, error) {
	rows, err := b.run(ctx, w, b.changes(w, who))
	if err != nil {
		return rows, err
	}
	row, err := b.edit(ctx, w, who)
	return append(rows, row), err
}

// changes scale a workload up, update it in the ways that its kind supports, and scale it down.
func (b *bench) changes(w workload, who controller) []load {
	loads := []load{{w.kind + " scale-up", who, w.Object, func() { w.scale(int32(b.Pods)) }, isReady, b.Pods, w.ready, 0}}
	if w.inPlace {
		loads = append(loads, load{w.kind + " in place", who, w.Object, func() { w.template().Spec.Containers[0].Image = imageAfter }, isUpdated, b.Pods, w.ready, b.Pods / 10})
	}
	if w.recreates {
		loads = append(loads, load{w.kind + " recreate", who, w.Object, func() { w.template().Spec.Containers[0].Args = again() }, isRecreated, b.Pods, w.ready, b.Pods / 10})
	}
	return append(loads, load{w.kind + " scale-down", who, w.Object, func() { w.scale(0) }, nil, 0, w.ready, 0})
}

// edit changes the image of a workload in the middle of its scale-up. Effect stays 0 if all pods were there before the edit:
// a built-in ReplicaSet then creates no more.
func (b *bench) edit(ctx context.Context, w workload, who controller) (Row, error) {
	row := Row{
		Load:       w.kind + " edit in mid scale-up",
		Pods:       b.Pods,
		Controller: who.name,
	}
	b.tell("%s", row.Load)
	pods, err := b.create(ctx, w)
	if err != nil {
		return row, err
	}
	change := func(edit func()) error {
		before := w.DeepCopyObject().(client.Object)
		edit()
		return b.client.Patch(ctx, w.Object, client.MergeFrom(before))
	}
	if err := change(func() { w.scale(int32(b.Pods)) }); err != nil {
		return row, fmt.Errorf("scale up: %w", err)
	}
	if err := until(ctx, "some pods", func() (bool, error) { return len(pods.List()) >= b.Pods/4, nil }); err != nil {
		return row, err
	}
	began := time.Now()
	if err := change(func() { w.template().Spec.Containers[0].Image = imageLast }); err != nil {
		return row, fmt.Errorf("edit the image: %w", err)
	}
	var seen, late bool
	err = until(ctx, "a pod of the new image", func() (bool, error) {
		all := pods.List()
		seen = slices.ContainsFunc(all, isLast)
		late = !seen && len(all) == b.Pods
		return seen || late, nil
	})
	row.Done = time.Since(began).Seconds()
	if err != nil {
		return row, err
	}
	if seen {
		row.Effect = row.Done
	}
	if err := change(func() { w.scale(0) }); err != nil {
		return row, fmt.Errorf("scale down: %w", err)
	}
	return row, until(ctx, "the end of the pods", func() (bool, error) { return len(pods.List()) == 0, nil })
}

func isLast(o any) bool {
	pod, ok := o.(*corev1.Pod)
	return ok && pod.Spec.Containers[0].Image == imageLast
}

// again are arguments, which only new pods have.
func again() []string { return []string{"again"} }

func isRecreated(pod *corev1.Pod) bool {
	return isReady(pod) && slices.Equal(pod.Spec.Containers[0].Args, again())
}

func isUpdated(pod *corev1.Pod) bool { return isReady(pod) && runsImageAfter(pod) }

func selector() *metav1.LabelSelector { return &metav1.LabelSelector{MatchLabels: podLabels()} }

func replicaSet() workload {
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: new(int32(0)),
			Selector: selector(),
			Template: template(),
		},
	}
	return workload{
		Object:      set,
		kind:        "ReplicaSet",
		controller:  "replicaset-controller",
		countsReady: "status.readyReplicas",
		template:    func() *corev1.PodTemplateSpec { return &set.Spec.Template },
		scale:       func(n int32) { set.Spec.Replicas = &n },
		ready: func() bool {
			s, want := set.Status, *set.Spec.Replicas
			return s.ObservedGeneration == set.Generation && s.ReadyReplicas == want && s.Replicas == want
		},
	}
}

func cloneSet() workload {
	set := &cloneset.CloneSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: cloneset.CloneSetSpec{
			Replicas: new(int32(0)),
			Selector: selector(),
			Template: template(),
			UpdateStrategy: cloneset.CloneSetUpdateStrategy{RollingUpdate: &cloneset.RollingUpdateCloneSetStrategy{
				PodUpdatePolicy: cloneset.InPlaceIfPossible, MaxUnavailable: new(intstr.FromString("10%")),
			}},
		},
	}
	return workload{
		Object:      set,
		kind:        "CloneSet",
		countsReady: "status.readyReplicas",
		scale:       func(n int32) { set.Spec.Replicas = &n },
		template:    func() *corev1.PodTemplateSpec { return &set.Spec.Template },
		inPlace:     true,
		ready: func() bool {
			s, want := set.Status, *set.Spec.Replicas
			return s.ObservedGeneration == set.Generation && s.Replicas == want && s.UpdatedReadyReplicas == want
		},
	}
}

// builtInStatefulSet returns a Parallel StatefulSet of Kubernetes.
func builtInStatefulSet() workload {
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.StatefulSetSpec{
			Replicas:            new(int32(0)),
			PodManagementPolicy: appsv1.ParallelPodManagement,
			Selector:            selector(),
			Template:            template(),
		},
	}
	return workload{
		Object:      set,
		kind:        "built-in StatefulSet",
		controller:  "statefulset-controller",
		countsReady: "status.readyReplicas",
		template:    func() *corev1.PodTemplateSpec { return &set.Spec.Template },
		scale:       func(n int32) { set.Spec.Replicas = &n },
		ready: func() bool {
			s, want := set.Status, *set.Spec.Replicas
			return s.ObservedGeneration == set.Generation && s.ReadyReplicas == want && s.Replicas == want
		},
	}
}

func statefulSet() workload {
	set := &statefulset.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: statefulset.StatefulSetSpec{
			Replicas:            new(int32(0)),
			PodManagementPolicy: appsv1.ParallelPodManagement,
			Selector:            selector(),
			Template:            template(),
			UpdateStrategy: statefulset.StatefulSetUpdateStrategy{RollingUpdate: &statefulset.RollingUpdateStatefulSetStrategy{
				PodUpdatePolicy: statefulset.InPlaceIfPossible, MaxUnavailable: new(intstr.FromString("10%")),
			}},
		},
	}
	set.Spec.Template.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: contract.InPlaceUpdateReady}}
	return workload{
		Object:      set,
		kind:        "StatefulSet",
		countsReady: "status.readyReplicas",
		scale:       func(n int32) { set.Spec.Replicas = &n },
		template:    func() *corev1.PodTemplateSpec { return &set.Spec.Template },
		inPlace:     true,
		ready: func() bool {
			s, want := set.Status, *set.Spec.Replicas
			return s.ObservedGeneration == set.Generation && s.Replicas == want && s.UpdatedReadyReplicas == want
		},
	}
}
