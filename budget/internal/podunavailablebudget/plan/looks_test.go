package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/testing/gen"
)

// A look at a pod that the cache never shows, because it came and went between two of its views, is not kept: the server
// is asked again, and says that the pod is gone.
func TestLooksAreKeptUntilTheCacheShowsThem(t *testing.T) {
	at := func(version string) *corev1.Pod {
		return gen.Pod("web-1", gen.Change(func(o *corev1.Pod) { o.ResourceVersion = version }))
	}
	looks := Looks{"web-1": NewLook(at("5"), "", nil)}
	for name, tt := range map[string]struct {
		cached *corev1.Pod
		kept   bool
	}{
		"nothing": {nil, false}, "an older one": {at("4"), true}, "the same": {at("5"), false}, "a newer one": {at("6"), false},
	} {
		kept := looks.StillNeeded(func(string) *corev1.Pod { return tt.cached })
		assert.Equal(t, tt.kept, len(kept) == 1, "the cache shows %s", name)
	}
}
