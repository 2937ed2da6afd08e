package budget

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/test/install"
	"github.com/flotilla-project/flotilla/test/story"
)

// moveManager begins to drain a node that a manager of budgets runs on. The returned function waits until two run elsewhere.
func moveManager(t *testing.T) (moved func()) {
	t.Helper()
	before, err := managers(t.Context())
	require.NoError(t, err)
	require.Len(t, before, 2)
	node, drained := before[0].Spec.NodeName, make(chan struct{})
	t.Cleanup(func() { uncordon(t, node) })
	go func() {
		defer close(drained)
		out, err := world.Kubectl(t, "", "drain", node, "--ignore-daemonsets", "--pod-selector=app.kubernetes.io/name=budget-manager", "--timeout=90s")
		assert.NoError(t, err, out)
	}()
	return func() {
		<-drained
		story.Eventually(t, "managers on other nodes", func(ctx context.Context) error {
			now, err := managers(ctx)
			n := 0
			for i := range now {
				if story.IsReady(&now[i]) && now[i].Spec.NodeName != node {
					n++
				}
			}
			return story.Want(err == nil && n == 2, "%d are ready (%v)", n, err)
		})
	}
}

// managers are those of budgets that do not terminate.
func managers(ctx context.Context) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := world.Client.List(ctx, list, client.InNamespace(install.Namespace), client.MatchingLabels{"app.kubernetes.io/name": "budget-manager"})
	return story.Active(list.Items), err
}

// asking evicts and deletes the pods of the namespace again and again, as dry runs, until the returned function is called. It
// allows no answer but those of a manager: a client that drains goes on after these alone.
func asking(t *testing.T, namespace string) (end func() (refused int)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	refused := 0
	all.Go(func() {
		for ctx.Err() == nil {
			list := &corev1.PodList{}
			if err := world.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
				continue
			}
			for i := range list.Items {
				o := &list.Items[i]
				evicted := world.Client.SubResource("eviction").Create(ctx, o, dryRun())
				deleted := world.Client.Delete(ctx, o, client.DryRunAll)
				if ctx.Err() != nil || apierrors.IsNotFound(evicted) || apierrors.IsNotFound(deleted) {
					continue
				}
				assert.True(t, evicted == nil || apierrors.IsTooManyRequests(evicted), "eviction of %s: %v", o.Name, evicted)
				assert.True(t, deleted == nil || apierrors.IsForbidden(deleted) || isBusy(deleted), "deletion of %s: %v", o.Name, deleted)
				if evicted != nil {
					refused++
				}
			}
		}
	})
	return func() int {
		cancel()
		all.Wait()
		return refused
	}
}

// isBusy reports whether a manager has refused because the API server did not answer it in time, as on a busy machine.
func isBusy(err error) bool {
	return strings.Contains(err.Error(), "denied the request") && strings.Contains(err.Error(), "context deadline exceeded")
}

// A resize in place asks nobody, and lets no pod go afterwards.
func TestAfterAResizeOfAllPodsTheirEvictionsAreRefused(t *testing.T) {
	t.Parallel()
	namespace, names := world.Namespace(t), []string{"a", "b", "c"}
	pods := make([]*corev1.Pod, len(names))
	for i, name := range names {
		pods[i] = newPod(namespace, name)
		pods[i].Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}
		require.NoError(t, world.Client.Create(t.Context(), pods[i]))
	}
	for _, o := range pods {
		isReady(t, o)
	}
	b := atLeast(namespace, 2)
	givenBudget(t, b, 3)
	end := world.Always(t, namespace, story.AtLeastReady(2))
	more := client.RawPatch("application/strategic-merge-patch+json", []byte(`{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"20m"}}}]}}`))
	for _, o := range pods {
		require.NoError(t, world.Client.SubResource("resize").Patch(t.Context(), o.DeepCopy(), more))
	}
	// A pod counts no more until its node has seen the change: whether one goes at once depends on the nodes.
	var gone *corev1.Pod
	story.Eventually(t, "the eviction of one pod", func(ctx context.Context) error {
		for _, o := range pods {
			err := evict(ctx, o)
			if err == nil {
				require.Nil(t, gone, "%s goes, too", o.Name)
				gone = o
			}
			require.True(t, err == nil || apierrors.IsTooManyRequests(err), "%v", err)
		}
		return story.Want(gone != nil, "all are refused")
	})
	for _, o := range pods {
		if o != gone {
			require.ErrorContains(t, world.Client.Delete(t.Context(), o), "2 available, 2 required")
		}
	}
	end()
}

// The pods of a workload that is gone are free: the one that has taken its name needs theirs.
func TestAStatefulSetThatIsMadeAnewGetsItsPods(t *testing.T) {
	t.Parallel()
	namespace := world.Namespace(t)
	set := newBuiltIn(namespace, 3)
	require.NoError(t, world.Client.Create(t.Context(), set))
	b := oneOf(namespace, "apps/v1", "StatefulSet")
	givenBudget(t, b, 3)
	former := set.UID
	require.NoError(t, world.Client.Delete(t.Context(), set, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	set = newBuiltIn(namespace, 3)
	require.NoError(t, world.Client.Create(t.Context(), set))
	require.NotEqual(t, former, set.UID)
	story.Eventually(t, "three pods of the new one", func(context.Context) error {
		n := 0
		for _, o := range story.Active(world.Pods(t, namespace)) {
			if metav1.IsControlledBy(&o, set) && story.IsReady(&o) {
				n++
			}
		}
		return story.Want(n == 3, "there are %d", n)
	})
	guards(t, b, 3)
}
