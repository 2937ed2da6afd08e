package statefulset

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/frame"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/workloads/failures"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
	"github.com/flotilla-project/flotilla/statefulset/internal/statefulset/plan"
)

// podLabel is the label by which the cache selects pods.
const podLabel = appsv1.StatefulSetPodNameLabel

// Workload is StatefulSet with its plan, which depends on the feature gates.
//
// Pods are cached with a name label. Built-in StatefulSets put it on their pods too, and they must be seen: left behind
// by a built-in set they are to be adopted as soon as they have no owner. While they have one, they are no more than a
// name. The label of the lifecycle state, which no built-in kind writes, would keep them out of memory and out of
// sight. Claims are all there are, because a set knows its own by name only.
func Workload(featureGates plan.FeatureGates) *frame.Workload[v1beta1.StatefulSet, *v1beta1.StatefulSet, plan.Snapshot] {
	failed := &failures.Memory{}
	return &frame.Workload[v1beta1.StatefulSet, *v1beta1.StatefulSet, plan.Snapshot]{
		Name:     "statefulset",
		Kind:     v1beta1.GroupVersion.WithKind(v1beta1.Kind),
		PodLabel: podLabel,
		Cached: map[client.Object]cache.ByObject{
			&corev1.Pod{}:                   fastclient.PodsOf(podLabel, v1beta1.GroupVersion.WithKind(v1beta1.Kind).GroupKind()),
			&corev1.PersistentVolumeClaim{}: {Transform: fastclient.Trim},
		},
		ClusterCached: map[client.Object]cache.ByObject{&storagev1.StorageClass{}: {Transform: fastclient.Trim, Field: fields.Everything()}},
		Describe: func(set *v1beta1.StatefulSet) frame.Set {
			return frame.Set{
				Selector:           set.Spec.Selector,
				Template:           &set.Spec.Template,
				ClaimTemplates:     set.Spec.VolumeClaimTemplates,
				Replicas:           set.Spec.Replicas,
				MinReadySeconds:    set.Spec.MinReadySeconds,
				Pods:               set.Status.Replicas,
				Available:          set.Status.AvailableReplicas,
				Conditions:         set.Status.Conditions,
				ObservedGeneration: set.Status.ObservedGeneration,
				CurrentRevision:    set.Status.CurrentRevision,
				CollisionCount:     set.Status.CollisionCount,
			}
		},
		DefaultPullPolicy: plan.DefaultPullPolicy,
		SameTemplate:      sameAsBuiltIn,
		IsMember:          plan.IsMember,
		Adopters:          adopters,
		Indexes:           indexMarks,
		Watch:             watch,
		Memories:          []pass.Memory{failed},
		PreDownload:       featureGates.PreDownload,
		Snapshot:          (&sources{failed: failed, featureGates: featureGates}).snapshot,
		Compute:           plan.Compute,
		Status: func(set *v1beta1.StatefulSet, seen plan.Snapshot, todo plan.Plan, done action.Failures) {
			set.Status = plan.Status(seen, todo, done)
		},
	}
}
