package marks

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

func namespace(labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: labels}}
}

func TestNamespacesHaveTheLabelWhileTheyHaveSpreads(t *testing.T) {
	const nothing = "nothing"
	for name, c := range map[string]struct {
		labels     map[string]string
		hasSpreads bool
		want       any
	}{
		"the first":       {nil, true, "true"},
		"another value":   {map[string]string{v1beta1.NamespaceLabel: ""}, true, "true"},
		"more":            {map[string]string{v1beta1.NamespaceLabel: "true"}, true, nothing},
		"after the last":  {map[string]string{v1beta1.NamespaceLabel: "true"}, false, nil},
		"a value of none": {map[string]string{v1beta1.NamespaceLabel: ""}, false, nil},
		"never any":       {map[string]string{"x": "y"}, false, nothing},
	} {
		t.Run(name, func(t *testing.T) {
			ns := namespace(c.labels)
			p := ofNamespace(ns, c.hasSpreads, action.Plan{Now: gen.Epoch()})
			got := any(nothing)
			if len(p.Steps) > 0 {
				got = p.Steps[0].Actions[0].Patches[0].Body["metadata"].(map[string]any)["labels"].(map[string]any)[v1beta1.NamespaceLabel]
			}
			assert.Equal(t, c.want, got)
			assert.Equal(t, namespace(c.labels), ns)
		})
	}
}

// The label that admission sets is not taken away before its WorkloadSpread is there.
func TestANewLabelWakesNobody(t *testing.T) {
	with, without := namespace(map[string]string{v1beta1.NamespaceLabel: "true"}), namespace(nil)
	assert.False(t, lost().Update(event.UpdateEvent{ObjectOld: without, ObjectNew: with}))
	assert.False(t, lost().Update(event.UpdateEvent{ObjectOld: with, ObjectNew: with}))
	assert.True(t, lost().Update(event.UpdateEvent{ObjectOld: with, ObjectNew: without}))
}
