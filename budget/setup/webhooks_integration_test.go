package setup

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/testing/await"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/disruption"
	"github.com/flotilla-project/flotilla/budget/internal/featuregates"
	"github.com/flotilla-project/flotilla/budget/internal/ledger"
)

// status returns the HTTP status of an error.
func status(t *testing.T, err error) metav1.Status {
	t.Helper()
	require.Error(t, err)
	known, ok := err.(apierrors.APIStatus)
	require.True(t, ok, err)
	return known.Status()
}

func TestEveryPathOfDisruptionStopsAtTheFloor(t *testing.T) {
	a := givenApp(t, serve(t, features.Defaults(featuregates.All()...)), 3)
	b := a.budget(t)
	assert.Equal(t, [4]int32{3, 2, 3, 1}, a.numbers(t, b))

	require.NoError(t, a.evict(t, a.pods[0]))
	assert.EqualValues(t, 0, a.numbers(t, b)[3], "the grant is recorded before the eviction is answered")

	refused := status(t, a.evict(t, a.pods[1]))
	assert.EqualValues(t, http.StatusTooManyRequests, refused.Code)
	assert.Contains(t, refused.Message, "refuses EVICT of pod web-1: 2 available, 2 required of 3 (maxUnavailable 1); blocked by: web-0")
	if refused.Details != nil {
		assert.Zero(t, refused.Details.RetryAfterSeconds, "clients would repeat it in silence")
	}
	assert.EqualValues(t, http.StatusTooManyRequests, status(t, a.evict(t, a.pods[1], client.DryRunAll)).Code)
	for name, err := range map[string]error{
		"DELETE":          a.Delete(t.Context(), a.pods[1].DeepCopy()),
		"a forced DELETE": a.Delete(t.Context(), a.pods[1].DeepCopy(), client.GracePeriodSeconds(0)),
		"UPDATE":          a.patch(t, a.pods[1], newImage),
		"UPDATE by label": a.patch(t, a.pods[1], `{"metadata":{"labels":{"unavailable-pod.kruise.io/x":"y"}}}`),
		"UPDATE of its service": a.Status().Patch(t.Context(), a.pods[1].DeepCopy(), client.RawPatch("application/strategic-merge-patch+json",
			[]byte(`{"status":{"conditions":[{"type":"InPlaceUpdateReady","status":"False"}]}}`))),
	} {
		refused := status(t, err)
		assert.EqualValues(t, http.StatusForbidden, refused.Code, name)
		assert.Contains(t, refused.Message, "2 available, 2 required", name)
		assert.True(t, apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause), "operators tell a budget from others who refuse: %s", name)
	}
	require.NoError(t, a.patch(t, a.pods[1], `{"metadata":{"labels":{"a":"b"}}}`), "metadata are free")

	a.setReady(t, a.pods[2], "False")
	require.NoError(t, a.patch(t, a.pods[2], newImage), "what does not serve is free")
	a.setReady(t, a.pods[2], "True")
	await.Until(t, func(check *assert.CollectT) { assert.Equal(check, [4]int32{3, 2, 2, 0}, a.numbers(check, b)) })

	a.addPod(t)
	await.Until(t, func(check *assert.CollectT) { assert.Equal(check, [4]int32{3, 2, 3, 1}, a.numbers(check, b)) })
	await.Until(t, func(check *assert.CollectT) { // the webhook's cache shows it, too
		assert.NoError(check, a.patch(t, a.pods[1], newImage))
	})
	require.NoError(t, a.Get(t.Context(), client.ObjectKeyFromObject(b), b))
	assert.Contains(t, b.Status.UnavailablePods, "web-1")
	assert.Equal(t, a.pods[1].UID, b.Status.PodUIDs["web-1"])
	require.Error(t, a.Delete(t.Context(), a.pods[2].DeepCopy()))
	require.NoError(t, a.Delete(t.Context(), a.pods[1].DeepCopy()), "it has a grant")
}

// The request for an eviction holds no pod, and the cache may not have it yet as its owner has just exempted it.
func TestAPodThatIsExemptedNowCanBeEvictedNow(t *testing.T) {
	a := givenApp(t, serve(t, features.Defaults(featuregates.All()...)), 1)
	a.budget(t, func(b *v1beta1.PodUnavailableBudget) { b.Spec.MaxUnavailable = new(intstr.FromInt32(0)) })
	for range 50 {
		require.NoError(t, a.patch(t, a.pods[0], `{"metadata":{"annotations":{"pub.kruise.io/no-protect":"false"}}}`))
		await.Until(t, func(check *assert.CollectT) { assert.Error(check, a.evict(t, a.pods[0], client.DryRunAll)) })
		require.NoError(t, a.patch(t, a.pods[0], `{"metadata":{"annotations":{"pub.kruise.io/no-protect":"true"}}}`))
		require.NoError(t, a.evict(t, a.pods[0], client.DryRunAll))
	}
}

// A pod that a user has labelled is out of service, and what may be done to the others follows from the budget as it is now.
func TestALabelTakesAPodOutOfService(t *testing.T) {
	const label, noLabel = `{"metadata":{"labels":{"unavailable-pod.kruise.io/data":"true"}}}`, `{"metadata":{"labels":{"unavailable-pod.kruise.io/data":null}}}`
	a := givenApp(t, serve(t, features.Defaults(featuregates.All()...)), 2)
	b := a.budget(t)
	labelled, other := a.pods[0], a.pods[1]
	require.NoError(t, a.patch(t, labelled, label))
	await.Until(t, func(check *assert.CollectT) { assert.Equal(check, [4]int32{2, 1, 1, 0}, a.numbers(check, b)) })
	require.NoError(t, a.patch(t, labelled, newImage), "it does not serve")
	require.NoError(t, a.patch(t, labelled, `{"metadata":{"labels":{"unavailable-pod.kruise.io/more":"true"}}}`))
	require.NoError(t, a.patch(t, labelled, `{"metadata":{"labels":{"unavailable-pod.kruise.io/more":null}}}`))
	require.ErrorContains(t, a.patch(t, other, label), "refuses UPDATE of pod web-1: 1 available, 1 required of 2")
	require.ErrorContains(t, a.patch(t, other, newImage), "refuses UPDATE of pod web-1")

	deletions := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"protectOperations":["DELETE"]}}`))
	require.NoError(t, a.Patch(t.Context(), b, deletions))
	await.Until(t, func(check *assert.CollectT) {
		image := client.RawPatch("application/strategic-merge-patch+json", []byte(newImage))
		assert.NoError(check, a.Patch(t.Context(), other.DeepCopy(), image, client.DryRunAll))
	})
	require.ErrorContains(t, a.Delete(t.Context(), other.DeepCopy(), client.DryRunAll), "refuses DELETE of pod web-1")
	require.NoError(t, a.patch(t, other, newImage))
	require.NoError(t, a.patch(t, labelled, noLabel))
	await.Until(t, func(check *assert.CollectT) { assert.Equal(check, [4]int32{2, 1, 2, 1}, a.numbers(check, b)) })
}

// Two replicas of the webhook and forty requests at once: as many are granted as the budget has.
func TestConcurrentRequestsShareTheBudget(t *testing.T) {
	const replicas, limit = 20, 4
	c := serve(t, features.Defaults(featuregates.All()...))
	a := givenApp(t, c, replicas)
	b := a.budget(t, func(b *v1beta1.PodUnavailableBudget) { b.Spec.MaxUnavailable = new(intstr.FromInt32(limit)) })
	other := &ledger.Ledger{Client: c, Live: c, Clock: clock.RealClock{}} // of the other replica, which serves no requests here
	var granted atomic.Int32
	var all sync.WaitGroup
	for i, pod := range a.pods {
		all.Go(func() {
			if i%2 == 0 {
				if a.SubResource("eviction").Create(context.Background(), pod.DeepCopy(), &policyv1.Eviction{}) == nil {
					granted.Add(1)
				}
				return
			}
			why, err := other.Ask(context.Background(), b.DeepCopy(), disruption.Request{Pod: pod, Operation: v1beta1.DeleteOperation})
			if err == nil && why == "" {
				granted.Add(1)
			}
		})
	}
	all.Wait()
	assert.LessOrEqual(t, granted.Load(), int32(limit))
	assert.Positive(t, granted.Load())
	require.NoError(t, a.Get(t.Context(), client.ObjectKeyFromObject(b), b))
	assert.GreaterOrEqual(t, b.Status.CurrentAvailable, b.Status.DesiredAvailable)
}

// The garbage collector deletes the pods of a node that is gone. They look ready for ever, and serve nobody.
func TestPodsOfVanishedNodesAreFree(t *testing.T) {
	a := givenApp(t, serve(t, features.Defaults(featuregates.All()...)), 2)
	lost := a.addPod(t, func(pod *corev1.Pod) { pod.Spec.NodeName = "gone" })
	b := a.budget(t, func(b *v1beta1.PodUnavailableBudget) {
		b.Spec.MaxUnavailable, b.Spec.MinAvailable = nil, new(intstr.FromInt32(3))
	})
	require.ErrorContains(t, a.Delete(t.Context(), a.pods[0].DeepCopy()), "refuses DELETE of pod web-0")
	require.NoError(t, a.Delete(t.Context(), lost.DeepCopy(), client.DryRunAll))
	require.NoError(t, a.evict(t, lost, client.DryRunAll))
	require.ErrorContains(t, a.patch(t, lost, newImage), "refuses UPDATE", "nobody has to change it")
	require.NoError(t, a.Delete(t.Context(), lost.DeepCopy(), client.GracePeriodSeconds(0)))
	await.Until(t, func(check *assert.CollectT) { assert.Equal(check, [4]int32{2, 3, 2, 0}, a.numbers(check, b)) })
}

// How many pods a DaemonSet wants follows from the nodes: the numbers do, too.
func TestADaemonSetSaysHowManyPodsItWants(t *testing.T) {
	c := serve(t, features.Defaults(featuregates.All()...))
	a := givenApp(t, c, 0)
	set := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "agent"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec()},
		},
	}
	require.NoError(t, c.Create(t.Context(), set))
	set.Status.DesiredNumberScheduled = 3
	require.NoError(t, c.Status().Update(t.Context(), set))
	for range 2 {
		a.addPod(t, func(pod *corev1.Pod) {
			pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))}
		})
	}
	b := a.budget(t, func(b *v1beta1.PodUnavailableBudget) {
		b.Spec.TargetReference.Kind, b.Spec.TargetReference.Name = "DaemonSet", "agent"
	})
	assert.Equal(t, [4]int32{3, 2, 2, 0}, a.numbers(t, b))
	assert.Nil(t, meta.FindStatusCondition(b.Status.Conditions, disruption.ConditionReplicasUnknown))
	require.ErrorContains(t, a.Delete(t.Context(), a.pods[0].DeepCopy()), "2 available, 2 required of 3")
}

func TestMarksStayAsLongAsTheBudget(t *testing.T) {
	a := givenApp(t, serve(t, features.Defaults(featuregates.All()...)), 2)
	b := a.budget(t, func(b *v1beta1.PodUnavailableBudget) {
		b.Spec.TargetReference, b.Spec.Selector = nil, &metav1.LabelSelector{MatchLabels: labels}
	})
	err := a.patch(t, a.pods[0], `{"metadata":{"annotations":{"pub.kruise.io/related-pub":null,"kruise.io/related-pub":null}}}`)
	assert.True(t, apierrors.IsForbidden(err), err)
	require.ErrorContains(t, err, "PodUnavailableBudget web covers the pod")

	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.namespace}}
	require.NoError(t, a.Patch(t.Context(), ns, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"`+v1beta1.NamespaceLabel+`":null}}}`))))
	await.Until(t, func(check *assert.CollectT) {
		require.NoError(check, a.Get(t.Context(), client.ObjectKeyFromObject(ns), ns))
		assert.Equal(check, "true", ns.Labels[v1beta1.NamespaceLabel], "it is put back")
	})
	marked := a.addPod(t)
	require.NoError(t, a.Get(t.Context(), client.ObjectKeyFromObject(marked), marked))

	require.NoError(t, a.Delete(t.Context(), b))
	await.Until(t, func(check *assert.CollectT) {
		for _, pod := range a.pods {
			require.NoError(check, a.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
			assert.NotContains(check, pod.Annotations, v1beta1.RelatedAnnotation)
		}
		require.NoError(check, a.Get(t.Context(), client.ObjectKeyFromObject(ns), ns))
		assert.NotContains(check, ns.Labels, v1beta1.NamespaceLabel)
	})
	require.NoError(t, a.Delete(t.Context(), a.pods[0]))
}

// The numbers follow the workload, and a budget without pods begins when they come.
func TestNumbersFollowTheWorkload(t *testing.T) {
	a := givenApp(t, serve(t, features.Defaults(featuregates.All()...)), 4)
	b := a.budget(t, func(b *v1beta1.PodUnavailableBudget) { b.Spec.MaxUnavailable = new(intstr.FromString("50%")) })
	assert.Equal(t, [4]int32{4, 2, 4, 2}, a.numbers(t, b))
	early := b.DeepCopy()
	early.ResourceVersion, early.UID, early.Name, early.Spec.TargetReference.Name = "", "", "early", "api"
	require.NoError(t, a.Create(t.Context(), early))

	scaled := a.deployment(t)
	before := client.MergeFrom(scaled.DeepCopy())
	scaled.Spec.Replicas = new(int32(8))
	require.NoError(t, a.Patch(t.Context(), scaled, before))
	await.Until(t, func(check *assert.CollectT) { assert.Equal(check, [4]int32{8, 4, 4, 0}, a.numbers(check, b)) })
	before = client.MergeFrom(scaled.DeepCopy())
	scaled.Spec.Replicas = new(int32(0))
	require.NoError(t, a.Patch(t.Context(), scaled, before))
	await.Until(t, func(check *assert.CollectT) { assert.Equal(check, [4]int32{0, 0, 0, 0}, a.numbers(check, b)) })
	await.Until(t, func(check *assert.CollectT) { // the webhook's cache shows it, too
		assert.NoError(check, a.Delete(t.Context(), a.pods[0].DeepCopy()))
	})
	require.NoError(t, a.Delete(t.Context(), a.pods[1]), "nothing is desired")

	api := scaled.DeepCopy()
	api.ResourceVersion, api.UID, api.Name, api.Spec.Replicas = "", "", "api", new(int32(2))
	require.NoError(t, a.Create(t.Context(), api))
	await.Until(t, func(check *assert.CollectT) { assert.Equal(check, [4]int32{2, 1, 0, 0}, a.numbers(check, early)) })
}

func TestBudgetsAreRefusedWithWords(t *testing.T) {
	c := serve(t, features.Defaults(featuregates.All()...))
	env.ConvertHere(t, "podunavailablebudgets.policy.kruise.io", older("probe"))
	first := older("first")
	first.Namespace = env.Namespace(t)
	first.Annotations = map[string]string{
		v1beta1.ProtectOperationsAnnotation: "DELETE, EVICT", v1beta1.ProtectTotalReplicasAnnotation: "7",
	}
	require.NoError(t, c.Create(t.Context(), first))
	hub := &v1beta1.PodUnavailableBudget{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(first), hub))
	assert.Equal(t, []v1beta1.PubOperation{v1beta1.DeleteOperation, v1beta1.EvictOperation}, hub.Spec.ProtectOperations)
	assert.EqualValues(t, 7, *hub.Spec.ProtectTotalReplicas)
	assert.Empty(t, hub.Annotations)

	await.Until(t, func(check *assert.CollectT) { // the webhook's cache shows it
		second := first.DeepCopy()
		second.Name, second.ResourceVersion = "second", ""
		err := c.Create(t.Context(), second, client.DryRunAll)
		assert.ErrorContains(check, err, "PodUnavailableBudget first selects the same pods")
	})
	err := c.Patch(t.Context(), first.DeepCopy(), client.RawPatch("application/merge-patch+json",
		[]byte(`{"metadata":{"annotations":{"kruise.io/pub-protect-operations":"BOGUS"}}}`)))
	assert.True(t, apierrors.IsInvalid(err), err)
	require.ErrorContains(t, err, "metadata.annotations[kruise.io/pub-protect-operations]")
	err = c.Patch(t.Context(), first.DeepCopy(), client.RawPatch("application/merge-patch+json",
		[]byte(`{"metadata":{"annotations":{"pub.kruise.io/ignored-pod-selector":"{\"matchLabels\":5}"}}}`)))
	assert.True(t, apierrors.IsInvalid(err), err)
	require.ErrorContains(t, err, "metadata.annotations[pub.kruise.io/ignored-pod-selector]")
	require.NoError(t, c.Patch(t.Context(), hub, client.RawPatch("application/merge-patch+json",
		[]byte(`{"spec":{"ignoredPodSelector":{"matchLabels":{"canary":"yes"}}}}`))))
	await.Until(t, func(check *assert.CollectT) { // the operator writes the status meanwhile
		require.NoError(check, c.Get(t.Context(), client.ObjectKeyFromObject(hub), hub))
		forgets := first.DeepCopy()
		forgets.ResourceVersion = hub.ResourceVersion
		err = c.Update(t.Context(), forgets)
		assert.True(check, apierrors.IsInvalid(err), err)
	})
	require.ErrorContains(t, err, "metadata.annotations[pub.kruise.io/ignored-pod-selector]: Forbidden: v1alpha1 cannot express ignoredPodSelector")

	err = c.Patch(t.Context(), hub, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"selector":{"matchLabels":{"app":"api"}}}}`)))
	require.ErrorContains(t, err, "spec.selector: Forbidden: is immutable")

	global := newBudget(first.Namespace)
	global.Spec.TargetReference = &v1beta1.TargetReference{APIVersion: "v1", Kind: "Node", Name: "node"}
	err = c.Create(t.Context(), global, client.DryRunAll)
	assert.ErrorContains(t, err, `spec.targetRef.kind: Invalid value: "Node": must be a namespaced kind`)
}

// The operator is down: no pod waits for it but those that a budget covers.
func TestOtherPodsDoNotNeedTheOperator(t *testing.T) {
	env.Need(t)
	c := env.Client(t)
	a := givenApp(t, c, 3)
	require.NoError(t, a.patch(t, a.pods[0], newImage))
	require.NoError(t, a.evict(t, a.pods[0]))
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.namespace}}
	require.NoError(t, c.Patch(t.Context(), ns, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"`+v1beta1.NamespaceLabel+`":"true"}}}`))))
	require.NoError(t, a.patch(t, a.pods[2], `{"metadata":{"annotations":{"pub.kruise.io/related-pub":"web"}}}`))
	await.Until(t, func(check *assert.CollectT) {
		assert.ErrorContains(check, c.Delete(t.Context(), a.pods[2].DeepCopy(), client.DryRunAll), "vpod.budget.kb.io")
	})
	require.NoError(t, a.patch(t, a.pods[1], newImage), "it has no mark")
	require.NoError(t, c.Delete(t.Context(), a.pods[1].DeepCopy()))
	require.NoError(t, a.patch(t, a.pods[2], `{"metadata":{"labels":{"a":"b"}}}`), "metadata are free")
	failed := a.addPod(t, func(pod *corev1.Pod) { pod.Annotations = map[string]string{"pub.kruise.io/related-pub": "web"} })
	require.ErrorContains(t, c.Delete(t.Context(), failed.DeepCopy()), "vpod.budget.kb.io")
	phase := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"phase":"Failed"}}`))
	require.NoError(t, c.Status().Patch(t.Context(), failed, phase))
	require.NoError(t, c.Delete(t.Context(), failed.DeepCopy()), "the collector of pods marks those of nodes that are gone so, and leaves condition Ready")
	a.setReady(t, a.pods[2], "False")
	require.NoError(t, c.Delete(t.Context(), a.pods[2].DeepCopy()), "it does not serve")
	a.addPod(t)
}

func TestBudgetsAreForbiddenWithoutTheirGates(t *testing.T) {
	off := features.Defaults(featuregates.All()...).With(featuregates.PodUnavailableBudgetDeleteGate, false).With(featuregates.PodUnavailableBudgetUpdateGate, false)
	c := serve(t, off)
	err := c.Create(t.Context(), newBudget(env.Namespace(t)))
	assert.True(t, apierrors.IsForbidden(err), err)
	assert.ErrorContains(t, err, "PodUnavailableBudgetDeleteGate and PodUnavailableBudgetUpdateGate are not enabled")
}
