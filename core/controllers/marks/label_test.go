package marks

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/testing/gen"
)

const label Label = "example.com/has"

func namespace(labels map[string]string, admitted ...time.Duration) *corev1.Namespace {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: labels}}
	for _, ago := range admitted {
		ns.Annotations = map[string]string{label.admitted(): gen.Epoch().Add(-ago).Format(time.RFC3339Nano)}
	}
	return ns
}

func marked() map[string]string { return map[string]string{string(label): "true"} }

func TestNamespacesHaveTheLabelWhileTheyHaveObjects(t *testing.T) {
	const nothing = "nothing"
	for name, c := range map[string]struct {
		given      *corev1.Namespace
		hasObjects bool
		want       any
		again      time.Duration
	}{
		"the first":                {given: namespace(nil), hasObjects: true, want: "true"},
		"another value":            {given: namespace(map[string]string{string(label): ""}), hasObjects: true, want: "true"},
		"more":                     {given: namespace(marked()), hasObjects: true, want: nothing},
		"after the last":           {given: namespace(marked()), want: nil},
		"a value of none":          {given: namespace(map[string]string{string(label): ""}), want: nil},
		"never any":                {given: namespace(map[string]string{"x": "y"}), want: nothing},
		"one was admitted":         {given: namespace(marked(), 10*time.Second), want: nothing, again: 50 * time.Second},
		"long ago":                 {given: namespace(marked(), time.Minute), want: nil},
		"by a clock that is ahead": {given: namespace(marked(), -10*time.Second), want: nothing, again: 70 * time.Second},
		"by a wrong clock":         {given: namespace(marked(), -time.Hour), want: nil},
		"the note alone":           {given: namespace(nil, time.Hour), want: nil},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.given.DeepCopy()
			p := label.keep(c.given, c.hasObjects, time.Minute, action.Plan{Now: gen.Epoch()})
			got := any(nothing)
			if len(p.Steps) > 0 {
				patch := p.Steps[0].Actions[0].Patches[0]
				got = patch.Body["metadata"].(map[string]any)["labels"].(map[string]any)[string(label)]
				assert.Equal(t, c.hasObjects, patch.AnyVersion, "a removal must not follow an admission that was not seen")
			}
			assert.Equal(t, c.want, got)
			assert.Equal(t, c.again, p.RequeueAfter)
			assert.Equal(t, before, c.given)
		})
	}
}

func TestWhatWakesANamespace(t *testing.T) {
	update := label.changes().Update
	with, without := namespace(marked()), namespace(nil)
	assert.True(t, update(event.UpdateEvent{ObjectOld: with, ObjectNew: without}))
	assert.True(t, update(event.UpdateEvent{ObjectOld: without, ObjectNew: with}), "it may get no object")
	assert.False(t, update(event.UpdateEvent{ObjectOld: with, ObjectNew: namespace(marked(), 0)}))
}
