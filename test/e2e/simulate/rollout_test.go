package simulate

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/test/forecasts"
	"github.com/flotilla-project/flotilla/test/story"
)

// rollout is an edit of a workload that is foretold, and then made.
type rollout[T client.Object] struct {
	// before changes the workload that is created. Optional.
	before func(T)
	edit   func(T)
}

// play creates the workload, makes the edit, and compares what happens with the forecast.
func (r rollout[T]) play(t *testing.T, set T) {
	t.Helper()
	if r.before != nil {
		r.before(set)
	}
	given(t, set)
	rollout := forecasts.Edit(t, world, set, r.edit)
	settles(t, set)
	rollout.ComesTrue(t)
}

// given creates the workload and waits until all its pods are available.
func given[T client.Object](t *testing.T, set T) {
	t.Helper()
	require.NoError(t, world.Client.Create(t.Context(), set))
	settles(t, set)
}

func settles[T client.Object](t *testing.T, set T) {
	t.Helper()
	story.Reaches(t, world, set, "the end of its rollout", func(set T) error {
		c := story.Condition(set, "Ready")
		return story.Want(observed(set) == set.GetGeneration() && c.Status == metav1.ConditionTrue, "condition Ready is %+v", c)
	})
}

// observed is the generation that the status of the workload is about.
func observed(set client.Object) int64 {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(set)
	if err != nil {
		panic(fmt.Sprintf("read %T: %v", set, err))
	}
	generation, _, _ := unstructured.NestedInt64(fields, "status", "observedGeneration")
	return generation
}
