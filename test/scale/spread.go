package scale

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	spread "github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

// zones returns the zones of the simulated nodes, which have them in turn.
func zones() []string { return []string{"a", "b"} }

func zoneOf(node int) map[string]string {
	return map[string]string{corev1.LabelTopologyZone: zones()[node%len(zones())]}
}

// spreadParts are what is measured of WorkloadSpreads: the loads of a ReplicaSet without one, and with one.
func (b *bench) spreadParts() []part {
	return []part{
		{name: "built-in", run: b.unspread, uncounted: true}, {name: "spread", run: b.spread}, {name: "many", run: b.manySpreads, apart: true},
	}
}

func (b *bench) unspread(ctx context.Context) ([]Row, error) {
	w := replicaSet()
	return b.run(ctx, w, b.changes(w, controller{b.controllerManager, w.controller}))
}

// spread measures a ReplicaSet with half of its pods in one zone and the rest in the other.
func (b *bench) spread(ctx context.Context) ([]Row, error) {
	w := replicaSet()
	w.kind = "spread ReplicaSet"
	pods, err := b.create(ctx, w)
	if err != nil {
		return nil, err
	}
	halves := halvesOf(w.Object)
	if err := b.accepted(ctx, halves); err != nil {
		return nil, err
	}
	if err := b.called(ctx, w.Object, spread.MatchedAnnotation, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	if err := until(ctx, "the end of the first pods", func() (bool, error) { return len(pods.List()) == 0, nil }); err != nil {
		return nil, err
	}
	loads := b.changes(w, b.ofOperator(""))
	for i, l := range loads {
		loads[i].reported = func() bool { return l.reported() && b.counted(ctx, halves) == l.pods }
	}
	rows, err := b.put(ctx, loads, pods)
	if err != nil {
		return rows, err
	}
	return rows, b.client.Delete(ctx, halves)
}

// halvesOf returns a WorkloadSpread that has half of a ReplicaSet's pods in the first zone.
func halvesOf(set client.Object) *spread.WorkloadSpread {
	s := &spread.WorkloadSpread{ObjectMeta: metav1.ObjectMeta{Namespace: set.GetNamespace(), Name: set.GetName()}}
	s.Spec.TargetReference = &spread.TargetReference{
		APIVersion: "apps/v1",
		Kind:       "ReplicaSet",
		Name:       set.GetName(),
	}
	for _, zone := range zones() {
		s.Spec.Subsets = append(s.Spec.Subsets, spread.WorkloadSpreadSubset{
			Name: zone, RequiredNodeSelector: &corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key:      corev1.LabelTopologyZone,
				Operator: corev1.NodeSelectorOpIn,
				Values:   []string{zone},
			}}},
		})
	}
	s.Spec.Subsets[0].MaxReplicas = new(intstr.FromString("50%"))
	return s
}

// counted returns how many pods the WorkloadSpread counts, or -1 if it could not be read.
func (b *bench) counted(ctx context.Context, s *spread.WorkloadSpread) int {
	if b.client.Get(ctx, client.ObjectKeyFromObject(s), s) != nil {
		return -1
	}
	n := 0
	for i := range s.Status.SubsetStatuses {
		n += int(s.Status.SubsetStatuses[i].Replicas)
	}
	return n
}

// called waits until the API server calls the operator's webhook for the pods of a ReplicaSet: new ones have the annotation
// from then on. The pods that it creates, if the options have no dry run, are surplus, and the ReplicaSet's controller deletes
// them.
func (b *bench) called(ctx context.Context, set client.Object, annotation string, o metav1.CreateOptions) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName:    name + "-",
			Labels:          podLabels(),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))},
		},
		Spec: podSpec(imageBefore),
	}
	var last error // the webhook refuses the pod until it knows the ReplicaSet
	err := until(ctx, "the operator's webhook for pods", func() (bool, error) {
		var made *corev1.Pod
		made, last = b.kube.CoreV1().Pods(set.GetNamespace()).Create(ctx, pod, o)
		return last == nil && made.Annotations[annotation] != "", nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}
