package daemonset_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flotilla-project/flotilla/core/testing/simnodes"
	"github.com/flotilla-project/flotilla/core/testing/testenv"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

// asks lets the template ask for so much cpu.
func asks(cpu string) change {
	return func(s *v1beta1.DaemonSet) {
		s.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
}

// Nodes put resizes off. Past the deadline the pods are recreated.
func TestPodsWithoutTheirResourcesAreRecreated(t *testing.T) {
	givenNodes(t, simnodes.Options{Images: map[string]simnodes.Image{"app:1": {RefuseResize: corev1.PodReasonDeferred}}})
	namespace := env.Namespace(t)
	startController(t, env, namespace)
	c := env.Client(t)
	set := newSet(namespace, inPlace, asks("100m"), rolling(func(r *v1beta1.RollingUpdateDaemonSet) {
		r.InPlaceUpdateStrategy = &v1beta1.InPlaceUpdateStrategy{ResizeDeadlineSeconds: new(int32(1))}
	}))
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set, nodeCount, nodeCount)
	before, audit := testenv.Identities(env.Pods(t, set.Namespace)), env.AuditOf(t, set.Namespace)
	testenv.Edit(t, c, set, asks("200m"))
	eventually(t, c, set, func(collect *assert.CollectT) {
		pods := active(env.Pods(t, set.Namespace))
		assert.Len(collect, pods, nodeCount)
		for _, identity := range testenv.Identities(pods) {
			assert.NotContains(collect, before, identity)
		}
	})
	settles(t, c, set, nodeCount, nodeCount)
	assert.Equal(t, nodeCount, audit.Done(t, userAgent)["delete pods"])
}
