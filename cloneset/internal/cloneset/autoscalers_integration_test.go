package cloneset_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
)

// What autoscalers do to sets and pods: KEDA scales to zero and back through the scale subresource, VPA
// finds pods by that subresource's selector, resizes them in place, and evicts them.

// asks lets the template ask for so much cpu.
func asks(cpu string) func(*v1beta1.CloneSet) {
	return func(s *v1beta1.CloneSet) {
		s.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
}

func scaleOf(t *testing.T, c client.Client, set *v1beta1.CloneSet) *autoscalingv1.Scale {
	t.Helper()
	scale := &autoscalingv1.Scale{}
	require.NoError(t, c.SubResource("scale").Get(t.Context(), set, scale))
	return scale
}

// 616: an autoscaler of events scales to zero and back, with PUT as with PATCH, and is told the selector
// while there is no pod.
func TestScaleToZeroAndBackByTheScaleSubresource(t *testing.T) {
	givenController(t)
	c, keda := env.Client(t), env.ClientAs(t, "keda")
	set := newSet(env.Namespace(t), 2, v1beta1.InPlaceIfPossible, 1)
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	put := func(replicas int32) {
		scale := scaleOf(t, keda, set)
		scale.Spec.Replicas = replicas
		require.NoError(t, keda.SubResource("scale").Update(t.Context(), set, client.WithSubResourceBody(scale)))
	}
	patch := func(replicas int32) {
		scale := &autoscalingv1.Scale{}
		body := map[int32]string{0: `{"spec":{"replicas":0}}`, 3: `{"spec":{"replicas":3}}`}[replicas]
		require.NoError(t, keda.SubResource("scale").Patch(t.Context(), set, client.RawPatch("application/merge-patch+json", []byte(body)),
			&client.SubResourcePatchOptions{SubResourceBody: scale}))
	}
	for _, step := range []struct {
		write    func(int32)
		replicas int32
	}{{put, 0}, {put, 1}, {patch, 0}, {patch, 3}} {
		step.write(step.replicas)
		settles(t, c, set)
		assert.Len(t, env.Pods(t, set.Namespace), int(step.replicas))
		scale := scaleOf(t, keda, set)
		assert.Equal(t, step.replicas, scale.Spec.Replicas)
		assert.Equal(t, step.replicas, scale.Status.Replicas)
		assert.Equal(t, "app=web", scale.Status.Selector)
	}
}

// 616, 1100: the selector of the scale subresource finds the pods of the set and no others, also where it
// is made of expressions.
func TestTheSelectorOfTheScaleSubresourceFindsThePods(t *testing.T) {
	givenController(t)
	c := env.Client(t)
	set := newSet(env.Namespace(t), 2, v1beta1.InPlaceIfPossible, 1)
	set.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{
		{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []string{"front", "middle"}},
		{Key: "canary", Operator: metav1.LabelSelectorOpDoesNotExist},
	}
	set.Spec.Template.Labels["tier"] = "middle"
	require.NoError(t, c.Create(t.Context(), set))
	for name, more := range map[string]map[string]string{"canary": {"tier": "middle", "canary": "yes"}, "back": {"tier": "back"}} {
		other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: set.Namespace, Labels: map[string]string{"app": "web"}}, Spec: set.Spec.Template.Spec}
		maps.Copy(other.Labels, more)
		require.NoError(t, c.Create(t.Context(), other))
	}
	settles(t, c, set)
	selector, err := labels.Parse(scaleOf(t, c, set).Status.Selector)
	require.NoError(t, err)
	found := &corev1.PodList{}
	require.NoError(t, c.List(t.Context(), found, client.InNamespace(set.Namespace), client.MatchingLabelsSelector{Selector: selector}))
	require.Len(t, found.Items, 2)
	for i := range found.Items {
		assert.True(t, metav1.IsControlledBy(&found.Items[i], set), found.Items[i].Name)
	}
}

// An update in place writes resources before it records them. Where the record was lost and the template is as before, the
// server alone knows whose resources the pod has.
func TestAResizeThatWasNotRecordedIsTakenBack(t *testing.T) {
	givenController(t)
	c := env.Client(t)
	set := newSet(env.Namespace(t), 2, v1beta1.InPlaceIfPossible, 1)
	asks("100m")(set)
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	edit(t, c, set, asks("200m"))
	settles(t, c, set)
	pods := env.Pods(t, set.Namespace)
	for i, manager := range []string{contract.ResizeManagerPrefix + "other", "vpa"} {
		assert.True(t, slices.ContainsFunc(pods[i].ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
			return podstate.ResizedFor(e) == podstate.ShortHash(pods[i].Labels[contract.RevisionLabel])
		}), "the resize names its revision: %v", pods[i].ManagedFields)
		body := `{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"300m"}}}]}}`
		require.NoError(t, c.SubResource("resize").Patch(t.Context(), &pods[i], client.RawPatch("application/strategic-merge-patch+json", []byte(body)), client.FieldOwner(manager)))
	}
	eventually(t, func(collect *assert.CollectT) {
		amounts := map[string]string{}
		for _, o := range env.Pods(t, set.Namespace) {
			amounts[o.Name] = o.Spec.Containers[0].Resources.Requests.Cpu().String()
			assert.Equal(collect, amounts[o.Name], o.Status.ContainerStatuses[0].Resources.Requests.Cpu().String())
		}
		assert.Equal(collect, map[string]string{pods[0].Name: "200m", pods[1].Name: "300m"}, amounts)
	})
	settles(t, c, set)
	assertCalm(t, c, set)
}

// 616: the set writes nothing about pods that a vertical autoscaler resizes, replaces those that it
// evicts, and updates both in place afterwards.
func TestAVerticalAutoscalerIsLivedWith(t *testing.T) {
	givenController(t)
	c, vpa := env.Client(t), env.ClientAs(t, "vpa-updater")
	set := newSet(env.Namespace(t), 3, v1beta1.InPlaceIfPossible, 1)
	asks("100m")(set)
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	pods := env.Pods(t, set.Namespace)
	audit := env.Audit(t)
	for i := range pods {
		body := `{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"300m"}}}]}}`
		require.NoError(t, vpa.SubResource("resize").Patch(t.Context(), &pods[i], client.RawPatch("application/strategic-merge-patch+json", []byte(body))))
	}
	eventually(t, func(collect *assert.CollectT) {
		for _, o := range env.Pods(t, set.Namespace) {
			assert.Equal(collect, "300m", o.Status.ContainerStatuses[0].Resources.Requests.Cpu().String())
		}
	})

	// The eviction makes the set look at all of its pods: what it had to say of the resizes is said by then.
	evicted := pods[0]
	require.NoError(t, vpa.SubResource("eviction").Create(t.Context(), &evicted, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: evicted.Name, Namespace: evicted.Namespace}}))
	eventually(t, func(collect *assert.CollectT) {
		now := env.Pods(t, set.Namespace)
		assert.Len(collect, now, 3)
		assert.NotContains(collect, testenv.Identities(now), testenv.Identities(pods[:1])[0])
	})
	settles(t, c, set)
	writes := audit.Writes(t, userAgent)
	assert.Equal(t, 1, writes["create pods"])
	assert.Zero(t, writes["patch pods"]+writes["patch pods/resize"]+writes["delete pods"], "%v", writes)

	kept := env.Pods(t, set.Namespace)
	edit(t, c, set, image("app:2"))
	settles(t, c, set)
	assert.Equal(t, testenv.Identities(kept), testenv.Identities(env.Pods(t, set.Namespace)))
	amounts := map[string]int{}
	for _, o := range env.Pods(t, set.Namespace) {
		assert.Equal(t, "app:2", o.Spec.Containers[0].Image)
		amounts[o.Spec.Containers[0].Resources.Requests.Cpu().String()]++
	}
	assert.Equal(t, map[string]int{"300m": 2, "100m": 1}, amounts)
}
