package admission

import (
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/workloads/rollout"
)

// Defaults of fields that stand by themselves. The schema of the CRD has them too.
const (
	defaultReplicas             = 1
	defaultRevisionHistoryLimit = 10
)

// Default writes out the defaults of absent fields. It leaves the templates alone, and it changes nothing in an
// object that it has seen before. Members of rollingUpdate are written for type RollingUpdate only.
func Default(set *v1beta1.CloneSet) {
	spec := &set.Spec
	fill(&spec.Replicas, defaultReplicas)
	fill(&spec.RevisionHistoryLimit, defaultRevisionHistoryLimit)
	if spec.UpdateStrategy.Type == "" {
		spec.UpdateStrategy.Type = v1beta1.RollingUpdate
	}
	if spec.UpdateStrategy.Type != v1beta1.RollingUpdate {
		return
	}
	if spec.UpdateStrategy.RollingUpdate == nil {
		spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{}
	}
	defaultRollingUpdate(spec.UpdateStrategy.RollingUpdate)
}

func defaultRollingUpdate(rolling *v1beta1.RollingUpdateCloneSetStrategy) {
	if rolling.PodUpdatePolicy == "" {
		rolling.PodUpdatePolicy = v1beta1.ReCreate
	}
	fill(&rolling.Partition, intstr.FromInt32(0))
	fill(&rolling.MaxUnavailable, intstr.FromString(rollout.DefaultMaxUnavailable))
	fill(&rolling.MaxSurge, intstr.FromInt32(0))
	if rolling.PodUpdatePolicy != v1beta1.ReCreate {
		fill(&rolling.InPlaceUpdateStrategy, workload.InPlaceUpdateStrategy{})
	}
}

func fill[T any](member **T, value T) {
	if *member == nil {
		*member = new(value)
	}
}
