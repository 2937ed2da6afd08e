package admission

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

func defaulted(change func(*v1beta1.DaemonSetSpec)) v1beta1.DaemonSetSpec {
	s := &set{}
	change(&s.Spec)
	Default(s)
	return s.Spec
}

func TestDefaults(t *testing.T) {
	assert.Equal(t, v1beta1.DaemonSetSpec{
		BurstReplicas: number(250), RevisionHistoryLimit: new(int32(10)),
		UpdateStrategy: v1beta1.DaemonSetUpdateStrategy{
			Type: v1beta1.RollingUpdateStrategyType,
			RollingUpdate: &strategy{
				RollingUpdateType: v1beta1.StandardRollingUpdateType, MaxUnavailable: number(1), MaxSurge: number(0),
			},
		},
	}, defaulted(func(*v1beta1.DaemonSetSpec) {}))
}

func TestOneLimitLeavesTheOtherAbsent(t *testing.T) {
	for name, given := range map[string]strategy{
		"maxUnavailable": {MaxUnavailable: text("30%")},
		"maxSurge":       {MaxSurge: number(2)},
		"none at all":    {MaxUnavailable: number(0)},
	} {
		t.Run(name, func(t *testing.T) {
			want := given
			want.RollingUpdateType = v1beta1.StandardRollingUpdateType
			got := defaulted(func(spec *v1beta1.DaemonSetSpec) { spec.UpdateStrategy.RollingUpdate = &given })
			assert.Equal(t, &want, got.UpdateStrategy.RollingUpdate)
		})
	}
}

func TestOnDeleteGetsNoRollingUpdate(t *testing.T) {
	got := defaulted(func(spec *v1beta1.DaemonSetSpec) { spec.UpdateStrategy.Type = v1beta1.OnDeleteStrategyType })
	assert.Nil(t, got.UpdateStrategy.RollingUpdate)
	assert.Equal(t, new(int32(10)), got.RevisionHistoryLimit)
}

func TestWhatIsWrittenStays(t *testing.T) {
	want := v1beta1.DaemonSetSpec{
		BurstReplicas: text("10%"), RevisionHistoryLimit: new(int32(0)), Template: gen.Template(gen.Image("main", "nginx")),
		UpdateStrategy: v1beta1.DaemonSetUpdateStrategy{
			Type:          v1beta1.RollingUpdateStrategyType,
			RollingUpdate: &strategy{RollingUpdateType: v1beta1.InPlaceRollingUpdateType, MaxUnavailable: number(3), Partition: text("50%")},
		},
	}
	got := defaulted(func(spec *v1beta1.DaemonSetSpec) { *spec = *want.DeepCopy() })
	assert.Equal(t, want, got, "the template too")
}
