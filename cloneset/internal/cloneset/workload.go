package cloneset

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/frame"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/workloads/failures"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/cloneset/internal/cloneset/plan"
)

// Workload is CloneSet with its plan, which depends on the feature gates. Of pods and claims those with an instance
// id are cached: pods of other workloads cost next to nothing.
func Workload(featureGates plan.FeatureGates) *frame.Workload[v1beta1.CloneSet, *v1beta1.CloneSet, plan.Snapshot] {
	failed := &failures.Memory{}
	return &frame.Workload[v1beta1.CloneSet, *v1beta1.CloneSet, plan.Snapshot]{
		Name:     "cloneset",
		Kind:     v1beta1.GroupVersion.WithKind(v1beta1.Kind),
		PodLabel: contract.InstanceIDLabel,
		Cached: map[client.Object]cache.ByObject{
			&corev1.Pod{}:                   fastclient.PodsWithLabel(contract.InstanceIDLabel),
			&corev1.PersistentVolumeClaim{}: {Label: fastclient.WithLabel(contract.InstanceIDLabel), Transform: fastclient.Trim},
		},
		ClusterCached: map[client.Object]cache.ByObject{&corev1.Node{}: fastclient.Nodes()},
		Describe: func(set *v1beta1.CloneSet) frame.Set {
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
		HashClaims:        true,
		Memories:          []pass.Memory{failed},
		Watch: func(_ *frame.Controller, owners frame.Owners, b *builder.Builder) {
			b.Watches(&corev1.PersistentVolumeClaim{}, owners.Objects())
		},
		PreDownload: featureGates.PreDownload,
		Snapshot:    sources{failed, featureGates}.snapshot,
		Compute:     plan.Compute,
		Status: func(set *v1beta1.CloneSet, seen plan.Snapshot, todo plan.Plan, done action.Failures) {
			set.Status = plan.Status(seen, todo, done)
		},
	}
}
