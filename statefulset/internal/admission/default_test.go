package admission

import (
	"testing"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

const (
	retain  = appsv1.RetainPersistentVolumeClaimRetentionPolicyType
	deletes = appsv1.DeletePersistentVolumeClaimRetentionPolicyType
)

type retention = v1beta1.StatefulSetPersistentVolumeClaimRetentionPolicy

func defaulted(featureGates FeatureGates, change func(*v1beta1.StatefulSetSpec)) v1beta1.StatefulSetSpec {
	s := &set{}
	if change != nil {
		change(&s.Spec)
	}
	Default(s, featureGates)
	return s.Spec
}

func TestDefaultsWithoutGates(t *testing.T) {
	assert.Equal(t, v1beta1.StatefulSetSpec{
		Replicas: new(int32(1)), RevisionHistoryLimit: new(int32(10)), PodManagementPolicy: appsv1.OrderedReadyPodManagement,
		UpdateStrategy: v1beta1.StatefulSetUpdateStrategy{
			Type: appsv1.RollingUpdateStatefulSetStrategyType,
			RollingUpdate: &v1beta1.RollingUpdateStatefulSetStrategy{
				Partition: new(int32(0)), MaxUnavailable: number(1), PodUpdatePolicy: v1beta1.ReCreate, MinReadySeconds: new(int32(0)),
			},
		},
	}, defaulted(FeatureGates{}, nil))
}

func TestDefaultsOfGates(t *testing.T) {
	assert.Equal(t, &retention{WhenDeleted: retain, WhenScaled: retain}, defaulted(FeatureGates{AutoDeletePVC: true}, nil).PersistentVolumeClaimRetentionPolicy)
	assert.Equal(t, v1beta1.OnClaimDelete, defaulted(FeatureGates{AutoResizePVC: true}, nil).VolumeClaimUpdateStrategy.Type)
}

func TestHalfARetentionPolicyIsCompletedWhateverTheGate(t *testing.T) {
	for _, on := range []bool{false, true} {
		spec := defaulted(FeatureGates{AutoDeletePVC: on}, func(spec *v1beta1.StatefulSetSpec) {
			spec.PersistentVolumeClaimRetentionPolicy = &retention{WhenScaled: deletes}
		})
		assert.Equal(t, &retention{WhenDeleted: retain, WhenScaled: deletes}, spec.PersistentVolumeClaimRetentionPolicy)
	}
}

func TestOnDeleteGetsNoRollingUpdate(t *testing.T) {
	spec := defaulted(FeatureGates{}, func(spec *v1beta1.StatefulSetSpec) {
		spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
	})
	assert.Nil(t, spec.UpdateStrategy.RollingUpdate)
}

func TestWhatIsWrittenStays(t *testing.T) {
	want := v1beta1.StatefulSetSpec{
		Replicas: new(int32(0)), RevisionHistoryLimit: new(int32(0)), PodManagementPolicy: appsv1.ParallelPodManagement,
		Template: gen.Template(gen.Image("main", "nginx")), VolumeClaimUpdateStrategy: v1beta1.VolumeClaimUpdateStrategy{Type: v1beta1.OnPodRollingUpdate},
		PersistentVolumeClaimRetentionPolicy: &retention{WhenDeleted: deletes, WhenScaled: deletes},
		UpdateStrategy: v1beta1.StatefulSetUpdateStrategy{
			Type: appsv1.RollingUpdateStatefulSetStrategyType,
			RollingUpdate: &v1beta1.RollingUpdateStatefulSetStrategy{
				Partition: new(int32(2)), MaxUnavailable: text("50%"), PodUpdatePolicy: v1beta1.InPlaceOnly, MinReadySeconds: new(int32(9)),
			},
		},
	}
	got := defaulted(FeatureGates{AutoDeletePVC: true, AutoResizePVC: true}, func(spec *v1beta1.StatefulSetSpec) { *spec = *want.DeepCopy() })
	assert.Equal(t, want, got, "the templates too")
}
