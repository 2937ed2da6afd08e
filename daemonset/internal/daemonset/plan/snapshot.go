package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/pods/eligibility"
	"github.com/flotilla-project/flotilla/core/workloads/model"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

// Snapshot is everything that a plan for one DaemonSet is made from, read-only.
type Snapshot struct {
	model.Snapshot[*v1beta1.DaemonSet]
	// Nodes are all nodes of the cluster, in any order.
	Nodes []Node
	// RetryFailedAt is when a failed pod may be replaced, by node. A node without an entry need not wait.
	RetryFailedAt map[string]time.Time
	// HadPod has the nodes of which is known that they had a pod of the set. It is read with partitioned scaling only.
	HadPod map[string]bool
	// UnreadySince is since when nodes have not been ready. A node with a condition that goes from False to Unknown, as
	// it does when a node dies, shows a later moment itself.
	UnreadySince map[string]time.Time
	// FeatureGates are the feature gates that the plan depends on.
	FeatureGates FeatureGates

	observed *observed // nil before Observed
}

// Node is a node and its verdict under the set's present template.
type Node struct {
	*corev1.Node
	eligibility.Verdict
}

// Plan is the result of one pass over a DaemonSet: the changes that it wants.
type Plan = model.Plan

// FeatureGates are the feature gates and options that change plans.
type FeatureGates struct {
	// PruneIneligibleNodes is DaemonSetPruneIneligibleNodes: nodes that should not run a pod take no part in updates.
	PruneIneligibleNodes bool
	// PreDownload is PreDownloadImageForDaemonSetUpdate: images are pulled on the nodes ahead of an update.
	PreDownload bool
	// EnvFromMetadata is InPlaceUpdateEnvFromMetadata.
	EnvFromMetadata bool
	// Resize allows changing resources in place: InPlaceWorkloadVerticalScaling where pods/resize is served.
	Resize bool
	// KeepMemoryLimits is true if the cluster lowers no memory limit of a container that does not restart for it.
	KeepMemoryLimits bool
	// AssignDirectly writes the node into new pods instead of leaving them to the default scheduler: flag
	// assign-pods-by-scheduler is false.
	AssignDirectly bool
	// AutoscalerAnnotation marks each new pod for the cluster autoscaler as a pod of a daemon set.
	AutoscalerAnnotation bool
}
