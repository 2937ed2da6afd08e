package setup

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/testing/await"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

// P9: while no operator answers the API server asks for none of the pods that no WorkloadSpread can concern, and creates
// and deletes the others all the same.
func TestNobodyWaitsForADeadOperator(t *testing.T) {
	env.Need(t)
	c := env.Client(t)
	there, elsewhere := env.Namespace(t), env.Namespace(t)
	touch(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: there}}, `{"metadata":{"labels":{"`+v1beta1.NamespaceLabel+`":"true"}}}`)
	createAndDelete := func(check require.TestingT, namespace string, n int, change func(*corev1.Pod)) (calls int) {
		owner := newReplicaSet(namespace, 1)
		owner.UID = "web"
		before := env.FailedCalls(t.Context(), check)
		errs := make([]error, n)
		var all sync.WaitGroup
		for i := range errs {
			all.Go(func() {
				pod := podOf(owner)
				change(pod)
				if errs[i] = c.Create(t.Context(), pod); errs[i] == nil {
					errs[i] = c.Delete(t.Context(), pod, client.GracePeriodSeconds(0))
				}
			})
		}
		all.Wait()
		for _, err := range errs {
			require.NoError(check, err)
		}
		return env.FailedCalls(t.Context(), check) - before
	}
	asIs := func(*corev1.Pod) {}
	await.Until(t, func(check *assert.CollectT) { // the API server has a watch of its own for labels
		assert.Positive(check, createAndDelete(check, there, 1, asIs))
	})
	assert.GreaterOrEqual(t, createAndDelete(t, there, 10, asIs), 10, "pods of workloads beside a WorkloadSpread")
	assert.GreaterOrEqual(t, createAndDelete(t, there, 10, func(pod *corev1.Pod) {
		pod.OwnerReferences[0].APIVersion, pod.OwnerReferences[0].Kind = contract.AppsGroup+"/v1beta1", "DaemonSet"
	}), 10, "pods of Advanced DaemonSets, which the ConfigMap may allow")
	assert.Zero(t, createAndDelete(t, elsewhere, 200, asIs), "pods of workloads in other namespaces")
	for what, change := range map[string]func(*corev1.Pod){
		"a pod of nobody": func(pod *corev1.Pod) { pod.OwnerReferences = nil },
		"a pod of a DaemonSet": func(pod *corev1.Pod) {
			pod.OwnerReferences[0].APIVersion, pod.OwnerReferences[0].Kind = appsv1.SchemeGroupVersion.String(), "DaemonSet"
		},
	} {
		assert.Zero(t, createAndDelete(t, there, 10, change), what)
	}
}
