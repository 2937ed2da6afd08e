package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

// A manifest that was read from a built-in DaemonSet has the generation of the template, which nobody raises for another
// kind: it says nothing of pods whose revision is known.
func TestAnEditRollsOutThoughTheTemplateGenerationStays(t *testing.T) {
	annotated := func(s *v1beta1.DaemonSet) {
		s.Annotations = map[string]string{appsv1.DeprecatedTemplateGeneration: "7"}
	}
	seventh := gen.Label(templateGenerationLabel, "7")
	w := given(t, 1, annotated).old("n1", seventh)
	assert.Equal(t, []string{"delete n1"}, w.did())
	assert.Zero(t, w.status().UpdatedNumberScheduled)

	w = given(t, 1, annotated).updated("n1", seventh, gen.Revision("forgotten"))
	assert.Empty(t, w.did(), "of others it does")
	assert.EqualValues(t, 1, w.status().UpdatedNumberScheduled)
}
