package podstate_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/testing/fuzz"
	"github.com/flotilla-project/flotilla/core/testing/gen"
)

// Any client that may write pods can write their labels, annotations and conditions.
func FuzzPod(f *testing.F) {
	fuzz.Typed(f, fuzz.CRD{}, func(t *testing.T, before, pod *corev1.Pod) {
		t.Helper()
		s := podstate.Of(pod, gen.Epoch(), 30)
		assert.False(t, s.Available && !s.Ready, "an available pod is ready")
		assert.GreaterOrEqual(t, s.AvailableIn, 0*s.AvailableIn)
		podstate.TroubleOf(pod)
		podstate.Changed(before, pod)
		podstate.ResizesForOthers(pod)
	}, fuzz.Pods(f)...)
}
