package setup

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv/operators"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// What OpenKruise has stored is taken over in mid-run: nothing but statuses is written, no node gets a second pod, and
// the end of the pods is that of the run.
func TestWhatOpenKruiseHasStoredGoesOn(t *testing.T) {
	env.Need(t)
	c := env.Client(t)
	for i := range 3 {
		givenEligibleNode(t, c, fmt.Sprintf("sim-%04d", i), map[string]string{"take": "over"})
	}
	namespace := env.Leftovers(t, "testdata/takeover.yaml", func(o *unstructured.Unstructured) {
		if o.GetKind() == v1beta1.AdvancedCronJobKind { // its next run is due, which is no matter of this test
			require.NoError(t, unstructured.SetNestedField(o.Object, true, "spec", "paused"))
		}
	})
	pods, audit := env.Pods(t, namespace), env.Audit(t)
	require.Len(t, pods, 3)
	cron := &v1beta1.AdvancedCronJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cron"}}
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(cron), cron))
	last := cron.Status.LastScheduleTime
	job := &v1beta1.BroadcastJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cron-1795170780"}}
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(job), job))
	cron.Status.Active[0].UID = job.UID // as the server has named it here
	require.NoError(t, c.Status().Update(t.Context(), cron))

	operators.Start(t, &env, Operator(), "--namespace="+namespace)
	await.Until(t, func(collect *assert.CollectT) {
		require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(job), job))
		s := &job.Status
		assert.Equal(collect, job.Generation, s.ObservedGeneration)
		assert.Equal(collect, [4]int32{3, 3, 0, 0}, [4]int32{s.Desired, s.Active, s.Succeeded, s.Failed})
		require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(cron), cron))
		assert.Equal(collect, cron.Generation, cron.Status.ObservedGeneration)
		assert.True(collect, last.Equal(cron.Status.LastScheduleTime))
		require.Len(collect, cron.Status.Active, 1)
		assert.Equal(collect, job.Name, cron.Status.Active[0].Name)
	})
	assert.ElementsMatch(t, []string{"patch advancedcronjobs/status", "patch broadcastjobs/status"}, audit.Kinds(t, "jobs-manager/", namespace))
	assert.Equal(t, pods, env.Pods(t, namespace))

	for i := range pods {
		before := pods[i].DeepCopy()
		pods[i].Status.Phase = corev1.PodSucceeded
		require.NoError(t, c.Status().Patch(t.Context(), &pods[i], client.MergeFrom(before)))
	}
	await.Until(t, func(collect *assert.CollectT) {
		require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(job), job))
		assert.Equal(collect, v1beta1.PhaseCompleted, job.Status.Phase)
		assert.EqualValues(collect, 3, job.Status.Succeeded)
		require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(cron), cron))
		assert.Empty(collect, cron.Status.Active)
		assert.NotNil(collect, cron.Status.LastSuccessfulTime)
	})
}

// givenEligibleNode makes a node that takes pods, and removes it at the end of the test.
func givenEligibleNode(t *testing.T, c client.Client, name string, labels map[string]string) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("10")}
	require.NoError(t, c.Create(t.Context(), node))
	t.Cleanup(func() {
		require.NoError(t, client.IgnoreNotFound(c.Delete(context.WithoutCancel(t.Context()), node)))
	})
	node.Spec.Taints = nil // admission has marked it as not ready
	require.NoError(t, c.Update(t.Context(), node))
}
