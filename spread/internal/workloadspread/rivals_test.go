package workloadspread

import (
	"testing"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

func TestARivalHasThePodsThatItSelects(t *testing.T) {
	object := func(uid, controller types.UID) *metav1.PartialObjectMetadata {
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: uid}}
		if controller != "" {
			o.OwnerReferences = []metav1.OwnerReference{{UID: controller, Controller: new(true)}}
		}
		return o
	}
	children := []*metav1.PartialObjectMetadata{object("group", "set"), object("other", "set"), object("part", "group")}
	within := below(children[0], children)
	assert.Equal(t, map[types.UID]bool{"group": true, "part": true}, within)

	owner := func(uid types.UID) gen.PodOption {
		return gen.OwnedBy(&appsv1.ReplicaSet{TypeMeta: metav1.TypeMeta{Kind: "ReplicaSet"}, ObjectMeta: metav1.ObjectMeta{Name: "x", UID: uid}})
	}
	mine, foreign := gen.Pod("a", owner("part"), gen.Label("role", "a")), gen.Pod("b", owner("other"), gen.Label("role", "a"))
	spread := &v1beta1.WorkloadSpread{}
	assert.True(t, rival{spread, nil}.has(foreign), "of the whole workload")
	assert.True(t, rival{spread, within}.has(mine))
	assert.False(t, rival{spread, within}.has(foreign))
	assert.False(t, rival{spread, within}.has(gen.Pod("c")), "nobody controls it")
	spread.Spec.TargetFilter = &v1beta1.TargetFilter{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"role": "b"}}}
	assert.False(t, rival{spread, within}.has(mine), "its filter does not select it")
}
