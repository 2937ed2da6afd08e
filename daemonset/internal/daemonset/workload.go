package daemonset

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/nodes"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/frame"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/workloads/model"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemonset/internal/daemonset/memory"
	"github.com/flotilla-project/flotilla/daemonset/internal/daemonset/plan"
)

// podLabel is the label by which the cache selects pods.
const podLabel = contract.RevisionLabel

// Workload is DaemonSet with its plan, which depends on the feature gates.
//
// Pods are cached with a revision label. Other kinds put it on their pods too; pods of built-in DaemonSets must be
// seen as soon as they have no owner any more. While they have one, they are no more than a name.
func Workload(featureGates plan.FeatureGates) *frame.Workload[v1beta1.DaemonSet, *v1beta1.DaemonSet, plan.Snapshot] {
	kind := v1beta1.GroupVersion.WithKind(v1beta1.Kind)
	known := &memory.Memory{}
	allNodes := map[client.Object]cache.ByObject{&corev1.Node{}: nodes.Cached()}
	return &frame.Workload[v1beta1.DaemonSet, *v1beta1.DaemonSet, plan.Snapshot]{
		Name:          "daemonset",
		Kind:          kind,
		PodLabel:      podLabel,
		Cached:        map[client.Object]cache.ByObject{&corev1.Pod{}: fastclient.PodsOf(podLabel, kind.GroupKind())},
		ClusterCached: allNodes,
		Fenced:        allNodes, // pods of nodes that are not known, or have old labels, would be deleted
		Describe: func(set *v1beta1.DaemonSet) frame.Set {
			s := &set.Status
			return frame.Set{
				Selector:           set.Spec.Selector,
				Template:           &set.Spec.Template,
				Replicas:           &s.DesiredNumberScheduled,
				MinReadySeconds:    set.Spec.MinReadySeconds,
				Pods:               s.CurrentNumberScheduled,
				Available:          s.NumberAvailable,
				Conditions:         s.Conditions,
				ObservedGeneration: s.ObservedGeneration,
				CollisionCount:     s.CollisionCount,
				InRollout:          s.UpdatedNumberScheduled < s.DesiredNumberScheduled,
			}
		},
		DefaultPullPolicy: plan.DefaultPullPolicy,
		HashLabel:         contract.RevisionLabel,
		Memories:          []pass.Memory{known},
		Watch: func(c *frame.Controller, _ frame.Owners, b *builder.Builder) {
			b.Watches(&corev1.Node{}, nodeEvents(c.Reader, &known.Eligible))
		},
		PreDownload: featureGates.PreDownload,
		Snapshot: func(ctx context.Context, c *frame.Controller, seen model.Snapshot[*v1beta1.DaemonSet]) (plan.Snapshot, error) {
			all, err := fastclient.All[corev1.Node](ctx, c.Reader, "")
			if err != nil {
				return plan.Snapshot{}, fmt.Errorf("list nodes: %w", err)
			}
			return snapshot(ctx, seen, known, all, featureGates).Observed(), nil
		},
		Compute: plan.Compute,
		Status: func(set *v1beta1.DaemonSet, seen plan.Snapshot, todo plan.Plan, done action.Failures) {
			set.Status = plan.Status(seen, todo, done)
		},
	}
}
