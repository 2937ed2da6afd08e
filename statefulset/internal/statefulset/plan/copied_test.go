package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/scenarios"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// A template may be the copy of a pod, with the labels by which a pod is asked to go.
func TestATemplateThatIsTheCopyOfAPodIsFollowed(t *testing.T) {
	w, p := play(t, cluster.Options{Seed: 1}, 3, func(s *v1beta1.StatefulSet) { scenarios.CopyPod(&s.Spec.Template) })
	scenarios.CheckCopiedPod(t, w, p, 3)
}

// A selector that asks for such a label would release every new pod at once.
func TestASelectorForALabelOfSinglePodsCreatesNothing(t *testing.T) {
	w := given(t, 3, func(s *v1beta1.StatefulSet) { s.Spec.Selector.MatchLabels[contract.SpecifiedDeleteLabel] = "true" })
	todo := Compute(w.snapshot())
	require.ErrorContains(t, todo.Err, contract.SpecifiedDeleteLabel)
	assert.Zero(t, todo.Count(action.Create))
}
