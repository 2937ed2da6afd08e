package statefulset_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/testing/simnodes"
	"github.com/flotilla-project/flotilla/core/testing/testenv"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// asks lets the template ask for so much cpu.
func asks(cpu string) func(*v1beta1.StatefulSet) {
	return func(s *v1beta1.StatefulSet) {
		s.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
}

// Nodes put resizes off, and the server refuses what they could never give. Past the deadline the pods are recreated.
func TestPodsWithoutTheirResourcesAreRecreated(t *testing.T) {
	givenNodes(t, simnodes.Options{Bind: true, Images: map[string]simnodes.Image{"app:1": {RefuseResize: corev1.PodReasonDeferred}}})
	c := env.Client(t)
	for name, cpu := range map[string]string{"put off": "200m", "refused": "100k"} {
		t.Run(name, func(t *testing.T) {
			namespace := env.Namespace(t)
			startController(t, env, namespace)
			set := newSet(namespace, 2, v1beta1.InPlaceIfPossible, 1)
			asks("100m")(set)
			set.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy = &workload.InPlaceUpdateStrategy{ResizeDeadlineSeconds: new(int32(1))}
			require.NoError(t, c.Create(t.Context(), set))
			settles(t, c, set)
			before, audit := testenv.Identities(env.Pods(t, set.Namespace)), env.AuditOf(t, set.Namespace)
			testenv.Edit(t, c, set, asks(cpu))
			settles(t, c, set)
			pods := env.Pods(t, set.Namespace)
			for _, identity := range testenv.Identities(pods) {
				assert.NotContains(t, before, identity)
			}
			for i := range pods {
				assert.Equal(t, cpu, pods[i].Spec.Containers[0].Resources.Requests.Cpu().String())
			}
			assert.Equal(t, 2, audit.Done(t, userAgent)["delete pods"])
		})
	}
}
