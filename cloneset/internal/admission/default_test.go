package admission

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/core/api/workload"
)

func TestDefault(t *testing.T) {
	rolling := func(policy v1beta1.PodUpdatePolicy, inPlace *workload.InPlaceUpdateStrategy) v1beta1.CloneSetUpdateStrategy {
		return v1beta1.CloneSetUpdateStrategy{
			Type: v1beta1.RollingUpdate,
			RollingUpdate: &v1beta1.RollingUpdateCloneSetStrategy{
				PodUpdatePolicy:       policy,
				Partition:             new(intstr.FromInt32(0)),
				MaxUnavailable:        new(intstr.FromString("20%")),
				MaxSurge:              new(intstr.FromInt32(0)),
				InPlaceUpdateStrategy: inPlace,
			},
		}
	}
	policy := func(policy v1beta1.PodUpdatePolicy) v1beta1.CloneSetUpdateStrategy {
		return v1beta1.CloneSetUpdateStrategy{RollingUpdate: &v1beta1.RollingUpdateCloneSetStrategy{PodUpdatePolicy: policy}}
	}
	onDelete := v1beta1.CloneSetUpdateStrategy{Type: v1beta1.OnDelete}
	cases := []struct {
		name     string
		strategy v1beta1.CloneSetUpdateStrategy
		want     v1beta1.CloneSetUpdateStrategy
	}{
		{"nothing said", v1beta1.CloneSetUpdateStrategy{}, rolling(v1beta1.ReCreate, nil)},
		{"in place", policy(v1beta1.InPlaceOnly), rolling(v1beta1.InPlaceOnly, &workload.InPlaceUpdateStrategy{})},
		{"OnDelete gets no rollingUpdate", onDelete, onDelete},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			set := &v1beta1.CloneSet{Spec: v1beta1.CloneSetSpec{UpdateStrategy: c.strategy}}
			Default(set)
			want := v1beta1.CloneSetSpec{Replicas: new(int32(1)), RevisionHistoryLimit: new(int32(10)), UpdateStrategy: c.want}
			assert.Equal(t, want, set.Spec, "everything else is left alone")

			again := set.DeepCopy()
			Default(again)
			assert.Equal(t, set, again)
		})
	}
}

func TestDefaultKeepsWhatIsSaid(t *testing.T) {
	said := v1beta1.CloneSetSpec{
		Replicas:             new(int32(0)),
		RevisionHistoryLimit: new(int32(0)),
		UpdateStrategy: v1beta1.CloneSetUpdateStrategy{
			Type: v1beta1.RollingUpdate,
			RollingUpdate: &v1beta1.RollingUpdateCloneSetStrategy{
				PodUpdatePolicy:       v1beta1.InPlaceIfPossible,
				Partition:             new(intstr.FromString("50%")),
				MaxUnavailable:        new(intstr.FromInt32(0)),
				MaxSurge:              new(intstr.FromInt32(1)),
				InPlaceUpdateStrategy: &workload.InPlaceUpdateStrategy{GracePeriodSeconds: 5},
			},
		},
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx"}}}},
	}
	set := &v1beta1.CloneSet{Spec: *said.DeepCopy()}
	Default(set)
	assert.Equal(t, said, set.Spec)
}
