package workloads

import (
	"context"
	"math"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Most returns how many active pods a workload has at most when no other client creates any: its replicas, and during an
// update its surge. known is false for kinds without known rules.
func (r *Reader) Most(ctx context.Context, workload *metav1.PartialObjectMetadata) (most int32, known bool, err error) {
	path, known := surgePath(workload.GroupVersionKind().GroupKind())
	if !known {
		return 0, false, nil
	}
	scale, err := r.targets.Replicas(ctx, workload)
	if err != nil || len(path) == 0 {
		return scale.Spec, err == nil, err
	}
	object, err := r.spec(ctx, workload)
	if err != nil {
		return 0, false, err
	}
	return withSurge(object, path, scale.Spec), true, nil
}

// surgePath returns where a kind has its surge, nothing if it has none, and whether its rules are known.
func surgePath(kind schema.GroupKind) (path []string, known bool) {
	switch kind {
	case Deployment:
		return []string{"spec", "strategy", "rollingUpdate", "maxSurge"}, true
	case CloneSet:
		return []string{"spec", "updateStrategy", "maxSurge"}, true
	case ReplicaSet, Job:
		return nil, true
	}
	return nil, false
}

func withSurge(object map[string]any, path []string, replicas int32) int32 {
	var surge intstr.IntOrString
	switch value, _, _ := unstructured.NestedFieldNoCopy(object, path...); v := value.(type) {
	case string:
		surge = intstr.FromString(v)
	case int64:
		surge = intstr.FromInt32(int32(min(max(v, 0), math.MaxInt32)))
	}
	more, err := intstr.GetScaledValueFromIntOrPercent(&surge, int(replicas), true)
	if err != nil {
		return math.MaxInt32 // admission refuses such a value
	}
	return int32(min(int64(replicas)+int64(max(more, 0)), math.MaxInt32))
}
