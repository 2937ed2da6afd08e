package admission

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/eligibility"
	"github.com/flotilla-project/flotilla/core/workloads/rollout"
	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemonset/internal/featuregates"
)

// Warnings warn the user about fields that are accepted and do not do the thing that they seem to do. The nodes are
// the nodes of the cluster, as far as they are known.
func Warnings(set *v1beta1.DaemonSet, featureGates FeatureGates, nodes []corev1.Node) []string {
	spec := &set.Spec
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	if rolling == nil || spec.UpdateStrategy.Type == v1beta1.OnDeleteStrategyType {
		rolling = &v1beta1.RollingUpdateDaemonSet{}
	}
	partitioned := !isZero(rolling.Partition)
	hooks := spec.Lifecycle
	var warnings []string
	for _, w := range []struct {
		text string
		is   bool
	}{
		{
			"spec.scaleStrategy.partitionedScaling only has an effect with spec.updateStrategy.rollingUpdate.partition",
			spec.ScaleStrategy != nil && spec.ScaleStrategy.PartitionedScaling && !partitioned,
		},
		{
			"spec.updateStrategy.rollingUpdate.unselectedNodePolicy only has an effect with selector or partition",
			rolling.UnselectedNodePolicy == v1beta1.RevertUnselectedNodes && rolling.Selector == nil && !partitioned,
		},
		{"spec.lifecycle.preNormal has no effect on DaemonSets", hooks != nil && hooks.PreNormal != nil},
		{
			"spec.lifecycle.preDelete only has an effect with labelsHandler or finalizersHandler",
			hooks != nil && hooks.PreDelete != nil && len(hooks.PreDelete.LabelsHandler)+len(hooks.PreDelete.FinalizersHandler) == 0,
		},
		{
			"spec.updateStrategy.rollingUpdate.maxSurge: the template uses host ports, so the surge pod cannot start while the old pod holds them",
			!isZero(rolling.MaxSurge) && usesHostPorts(&spec.Template.Spec),
		},
		{
			"image pre-download has no effect: feature gate " + string(featuregates.PreDownloadImageForDaemonSetUpdate) +
				" of the DaemonSet operator is off",
			asksPreDownload(set) && !featureGates.PreDownload,
		},
	} {
		if w.is {
			warnings = append(warnings, w.text)
		}
	}
	if w := lowPartition(set, nodes); w != "" {
		warnings = append(warnings, w)
	}
	return warnings
}

// usesNodes reports whether warnings for the set depend on the nodes of the cluster.
func usesNodes(set *v1beta1.DaemonSet) bool {
	r := set.Spec.UpdateStrategy.RollingUpdate
	return r != nil && set.Spec.UpdateStrategy.Type != v1beta1.OnDeleteStrategyType && r.Selector != nil && !isZero(r.Partition)
}

// lowPartition warns of a partition that keeps back none of the nodes that the selector matches: it is taken off all
// nodes, and users take it for a part of those.
func lowPartition(set *v1beta1.DaemonSet, nodes []corev1.Node) string {
	if !usesNodes(set) {
		return ""
	}
	r := set.Spec.UpdateStrategy.RollingUpdate
	selector, err := metav1.LabelSelectorAsSelector(r.Selector)
	if err != nil {
		return ""
	}
	eligible := 0
	selected := 0
	template := eligibility.Compile(&set.Spec.Template, eligibility.ForDaemons)
	for i := range nodes {
		if !template.Of(&nodes[i]).ShouldRun {
			continue
		}
		eligible++
		if selector.Matches(labels.Set(nodes[i].Labels)) {
			selected++
		}
	}
	partition, err := rollout.Scaled("partition", *r.Partition, int32(eligible), rollout.RoundDown)
	if others := eligible - selected; err == nil && selected > 0 && int(partition) <= others {
		return fmt.Sprintf("spec.updateStrategy.rollingUpdate.partition: %d counts from all %d eligible nodes, and the selector matches %d of them: "+
			"a partition keeps selected nodes at the older revision only if it is above %d", partition, eligible, selected, others)
	}
	return ""
}

func asksPreDownload(set *v1beta1.DaemonSet) bool {
	return slices.ContainsFunc([]string{
		contract.ImagePreDownloadParallelismAnnotation, contract.ImagePreDownloadTimeoutSecondsAnnotation,
		contract.ImagePreDownloadMinUpdatedReadyPodsAnnotation,
	}, func(key string) bool { _, ok := set.Annotations[key]; return ok })
}

func usesHostPorts(pod *corev1.PodSpec) bool {
	return slices.ContainsFunc(pod.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.HostPort != 0 || pod.HostNetwork })
	})
}
