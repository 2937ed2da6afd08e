package statefulset_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// 616: autoscalers write the scale subresource, also to zero and back, and find the pods by its selector.
func TestAutoscalersUseTheScaleSubresource(t *testing.T) {
	givenController(t)
	c := env.Client(t)
	set := newSet(env.Namespace(t), 2, v1beta1.InPlaceIfPossible, 1)
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	for _, n := range []int32{0, 2, 0, 1} {
		scale := &autoscalingv1.Scale{}
		require.NoError(t, c.SubResource("scale").Get(t.Context(), set, scale))
		scale.Spec.Replicas = n
		require.NoError(t, c.SubResource("scale").Update(t.Context(), set, client.WithSubResourceBody(scale)))
		settles(t, c, set)
		require.NoError(t, c.SubResource("scale").Get(t.Context(), set, scale))
		assert.Equal(t, autoscalingv1.ScaleStatus{Replicas: n, Selector: "app=web"}, scale.Status)
		assert.Equal(t, []string{"web-0", "web-1"}[:n], append([]string{}, names(env.Pods(t, set.Namespace))...))
	}
}

// 616: a vertical autoscaler resizes one pod in place and evicts the other. The set writes nothing about
// the one, makes the other anew under its name, and updates both in place afterwards.
func TestAVerticalAutoscalerIsLivedWith(t *testing.T) {
	givenController(t)
	c := env.Client(t)
	set := newSet(env.Namespace(t), 2, v1beta1.InPlaceIfPossible, 1)
	set.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	pods := env.Pods(t, set.Namespace)
	audit := env.Audit(t)
	resize := client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"300m"}}}]}}`))
	require.NoError(t, c.SubResource("resize").Patch(t.Context(), &pods[0], resize))
	evicted := pods[1].DeepCopy()
	require.NoError(t, c.SubResource("eviction").Create(t.Context(), evicted, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "web-1", Namespace: set.Namespace}}))
	await.Until(t, func(collect *assert.CollectT) {
		now := env.Pods(t, set.Namespace)
		require.Len(collect, now, 2)
		assert.NotEqual(collect, pods[1].UID, now[1].UID)
	})
	settles(t, c, set)
	writes := audit.Writes(t, userAgent)
	assert.Equal(t, 1, writes["create pods"])
	assert.Zero(t, writes["patch pods"]+writes["patch pods/resize"]+writes["delete pods"], "%v", writes)

	kept := testenv.Identities(env.Pods(t, set.Namespace))
	testenv.Edit(t, c, set, image("app:2"))
	settles(t, c, set)
	pods = env.Pods(t, set.Namespace)
	assert.Equal(t, kept, testenv.Identities(pods))
	var have []string
	for _, o := range pods {
		have = append(have, fmt.Sprintf("%s %s", o.Spec.Containers[0].Image, o.Spec.Containers[0].Resources.Requests.Cpu()))
	}
	assert.Equal(t, []string{"app:2 300m", "app:2 100m"}, have)
}
