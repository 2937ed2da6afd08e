package setup

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/core/testing/await"
)

// P9: while no operator answers the API server asks for no pod of a namespace without a budget, and for none without a mark
// beside a budget but when it is made, which goes on without an answer.
func TestNobodyWaitsForADeadOperator(t *testing.T) {
	env.Need(t)
	c := env.Client(t)
	there, elsewhere := givenApp(t, c, 0), givenApp(t, c, 0)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: there.namespace}}
	require.NoError(t, c.Patch(t.Context(), ns, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+v1beta1.NamespaceLabel+`":"true"}}}`))))
	remove := func(a *app, pod *corev1.Pod) error { return a.Delete(t.Context(), pod, client.GracePeriodSeconds(0)) }
	evict := func(a *app, pod *corev1.Pod) error { return a.evict(t, pod) }
	made, number := 0, 0
	live := func(check require.TestingT, a *app, n int, end func(*app, *corev1.Pod) error) (calls int) {
		errs, before := make([]error, n), env.FailedCalls(t.Context(), check)
		pods := make([]*corev1.Pod, n)
		var all sync.WaitGroup
		for i := range pods {
			pods[i] = a.newPod(number)
			number++
			all.Go(func() { errs[i] = a.Create(t.Context(), pods[i]) })
		}
		all.Wait()
		made = env.FailedCalls(t.Context(), check) - before
		for i := range pods {
			require.NoError(check, errs[i])
			all.Go(func() {
				a.setReady(t, pods[i], corev1.ConditionTrue)
				if errs[i] = a.patch(t, pods[i], newImage); errs[i] == nil {
					errs[i] = end(a, pods[i])
				}
			})
		}
		all.Wait()
		for _, err := range errs {
			require.NoError(check, err)
		}
		return env.FailedCalls(t.Context(), check) - before - made
	}
	await.Until(t, func(check *assert.CollectT) { // the API server has a watch of its own for labels
		live(check, there, 1, remove)
		assert.Positive(check, made)
	})
	assert.Zero(t, live(t, there, 20, remove), "pods without a mark beside a budget are changed and deleted")
	assert.GreaterOrEqual(t, made, 20, "they would get their marks when they are made")
	for what, end := range map[string]func(*app, *corev1.Pod) error{"deleted": remove, "evicted": evict} {
		assert.Zero(t, live(t, elsewhere, 100, end), "pods of other namespaces are changed and "+what)
		assert.Zero(t, made, "and made")
	}
}
