package cloneset_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/testing/testenv"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// The server refuses to give pods more than their nodes have. Past the deadline they are recreated, for which the server
// asks nobody.
func TestPodsOfNodesThatAreTooSmallAreRecreated(t *testing.T) {
	givenController(t)
	c := env.Client(t)
	set := newSet(env.Namespace(t), 2, v1beta1.InPlaceIfPossible, 1)
	asks("100m")(set)
	set.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy = &workload.InPlaceUpdateStrategy{ResizeDeadlineSeconds: new(int32(1))}
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	before, audit := testenv.Identities(env.Pods(t, set.Namespace)), env.AuditOf(t, set.Namespace)
	edit(t, c, set, asks("200m"))
	settles(t, c, set)
	require.ElementsMatch(t, before, testenv.Identities(env.Pods(t, set.Namespace)), "what a node has it gives")

	edit(t, c, set, asks("100k"))
	settles(t, c, set)
	pods := env.Pods(t, set.Namespace)
	for _, identity := range testenv.Identities(pods) {
		assert.NotContains(t, before, identity)
	}
	for i := range pods {
		assert.Equal(t, "100k", pods[i].Spec.Containers[0].Resources.Requests.Cpu().String())
	}
	assert.Equal(t, 2, audit.Done(t, userAgent)["delete pods"])
}

// The server takes other resources of native sidecars, and nothing restarts for them.
func TestNativeSidecarsAreResizedInPlace(t *testing.T) {
	givenController(t)
	c := env.Client(t)
	proxy := func(cpu string) func(*v1beta1.CloneSet) {
		return func(s *v1beta1.CloneSet) {
			s.Spec.Template.Spec.InitContainers = []corev1.Container{{
				Name: "proxy", Image: "proxy:1", RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
			}}
		}
	}
	set := newSet(env.Namespace(t), 2, v1beta1.InPlaceOnly, 1)
	proxy("100m")(set)
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	before, audit := testenv.Identities(env.Pods(t, set.Namespace)), env.AuditOf(t, set.Namespace)
	edit(t, c, set, proxy("200m"))
	settles(t, c, set)
	pods := env.Pods(t, set.Namespace)
	assert.ElementsMatch(t, before, testenv.Identities(pods))
	for i := range pods {
		assert.Equal(t, "200m", pods[i].Spec.InitContainers[0].Resources.Requests.Cpu().String())
		assert.Zero(t, pods[i].Status.InitContainerStatuses[0].RestartCount)
	}
	assert.Equal(t, 2, audit.Writes(t, userAgent)["patch pods/resize"])
}
