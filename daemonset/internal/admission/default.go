package admission

import (
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

// Defaults of fields that stand by themselves. The schema of the CRD has them too.
const (
	defaultBurstReplicas        = 250
	defaultRevisionHistoryLimit = 10
)

// Default writes out the defaults of absent fields. It leaves the template alone, and it changes nothing in an object
// that it has seen before.
func Default(set *v1beta1.DaemonSet) {
	spec := &set.Spec
	fill(&spec.BurstReplicas, intstr.FromInt32(defaultBurstReplicas))
	fill(&spec.RevisionHistoryLimit, defaultRevisionHistoryLimit)
	word(&spec.UpdateStrategy.Type, v1beta1.RollingUpdateStrategyType)
	if spec.UpdateStrategy.Type == v1beta1.RollingUpdateStrategyType {
		fill(&spec.UpdateStrategy.RollingUpdate, v1beta1.RollingUpdateDaemonSet{})
		defaultRollingUpdate(spec.UpdateStrategy.RollingUpdate)
	}
}

// defaultRollingUpdate: one number given leaves the other absent, which counts as 0.
func defaultRollingUpdate(rolling *v1beta1.RollingUpdateDaemonSet) {
	word(&rolling.RollingUpdateType, v1beta1.StandardRollingUpdateType)
	if rolling.MaxUnavailable == nil && rolling.MaxSurge == nil {
		rolling.MaxUnavailable = new(intstr.FromInt32(1))
		rolling.MaxSurge = new(intstr.FromInt32(0))
	}
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
