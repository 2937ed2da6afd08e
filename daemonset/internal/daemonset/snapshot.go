package daemonset

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-project/flotilla/core/workloads/model"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemonset/internal/daemonset/memory"
	"github.com/flotilla-project/flotilla/daemonset/internal/daemonset/plan"
)

// snapshot completes the frame's snapshot with the nodes and with the remembered facts about the set. It logs which
// pods the plan leaves alone.
func snapshot(ctx context.Context, seen model.Snapshot[*v1beta1.DaemonSet], known *memory.Memory, nodes []*corev1.Node, featureGates plan.FeatureGates) plan.Snapshot {
	now := memory.Seen{
		Set:           seen.Set,
		Pods:          seen.Pods,
		Nodes:         nodes,
		Now:           seen.Now,
		FirstPodsWait: plan.PartitionedScaling(seen.Set),
	}
	if update := seen.Chosen.Update; update != nil {
		now.Revision = update.Name
	}
	facts := known.Recall(now)
	for _, pod := range facts.Strays {
		log.FromContext(ctx).Info("Ignored a pod without a node name and without a node affinity for a single node", "pod", pod.Name)
	}
	s := plan.Snapshot{
		Snapshot:      seen,
		Nodes:         make([]plan.Node, len(nodes)),
		RetryFailedAt: facts.RetryFailedAt,
		HadPod:        facts.HadPod,
		UnreadySince:  facts.UnreadySince,
		FeatureGates:  featureGates,
	}
	for i, verdict := range facts.Verdicts {
		s.Nodes[i] = plan.Node{Node: nodes[i], Verdict: verdict}
	}
	return s
}
