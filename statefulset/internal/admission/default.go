package admission

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// FeatureGates are the feature gates that admission asks.
type FeatureGates struct {
	// StartOrdinal honours ordinals.start.
	StartOrdinal bool
	// AutoDeletePVC honours persistentVolumeClaimRetentionPolicy.
	AutoDeletePVC bool
	// AutoResizePVC honours volumeClaimUpdateStrategy.
	AutoResizePVC bool
	// PreDownload honours the settings of image pre-download.
	PreDownload bool
	// DeletionProtection refuses to delete sets that carry a label which asks for that.
	DeletionProtection bool
	// Forecast warns of the effect that an edit of the template has on the pods.
	Forecast bool
}

// Defaults of fields that stand by themselves. The schema of the CRD has them too.
const (
	defaultReplicas             = 1
	defaultRevisionHistoryLimit = 10
)

// Default writes out the defaults of absent fields. It leaves the templates alone, and it changes nothing in an
// object that it has seen before.
func Default(set *v1beta1.StatefulSet, featureGates FeatureGates) {
	spec := &set.Spec
	fill(&spec.Replicas, defaultReplicas)
	fill(&spec.RevisionHistoryLimit, defaultRevisionHistoryLimit)
	word(&spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	word(&spec.UpdateStrategy.Type, appsv1.RollingUpdateStatefulSetStrategyType)
	if spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType {
		fill(&spec.UpdateStrategy.RollingUpdate, v1beta1.RollingUpdateStatefulSetStrategy{})
		defaultRollingUpdate(spec.UpdateStrategy.RollingUpdate)
	}
	if featureGates.AutoResizePVC {
		word(&spec.VolumeClaimUpdateStrategy.Type, v1beta1.OnClaimDelete)
	}
	if featureGates.AutoDeletePVC {
		fill(&spec.PersistentVolumeClaimRetentionPolicy, v1beta1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
	}
	if policy := spec.PersistentVolumeClaimRetentionPolicy; policy != nil {
		word(&policy.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
		word(&policy.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	}
}

func defaultRollingUpdate(rolling *v1beta1.RollingUpdateStatefulSetStrategy) {
	fill(&rolling.Partition, 0)
	fill(&rolling.MaxUnavailable, intstr.FromInt32(1))
	word(&rolling.PodUpdatePolicy, v1beta1.ReCreate)
	fill(&rolling.MinReadySeconds, 0)
}

func fill[T any](member **T, value T) {
	if *member == nil {
		*member = new(value)
	}
}

func word[T ~string](member *T, value T) {
	if *member == "" {
		*member = value
	}
}
