package budget

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clonesets "github.com/flotilla-project/flotilla/cloneset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/story"
)

// Two of four pods are on one of three nodes, at least. Their drain is refused at first, goes on by itself, and ends. One
// drain follows the other: they close nodes.
func TestADrainWaitsForTheBudget(t *testing.T) {
	t.Parallel()
	const replicas = 4
	t.Run("alone", func(t *testing.T) {
		d := givenDeployment(t, world.Namespace(t), replicas)
		b := oneOf(d.Namespace, "apps/v1", "Deployment")
		givenBudget(t, b, replicas)
		end := world.Always(t, d.Namespace, story.AtLeastReady(replicas-1))
		node, out := drain(t, d.Namespace)
		guards(t, b, replicas)
		end()
		assert.Contains(t, out, "PodUnavailableBudget "+b.Namespace+"/web refuses EVICT of pod web-")
		assert.Contains(t, out, "will retry after 5s")
		for _, o := range story.Active(world.Pods(t, d.Namespace)) {
			assert.NotEqual(t, node, o.Spec.NodeName, o.Name)
		}
		assert.EqualValues(t, replicas, b.Status.TotalReplicas)
		assert.EqualValues(t, 1, b.Status.UnavailableAllowed)
	})
	// Meanwhile the node of one of the budget's managers is drained, too.
	t.Run("beside a manager that moves", func(t *testing.T) {
		world.ScaleOperator(t, "budget", 2)
		d := givenDeployment(t, world.Namespace(t), replicas)
		b := oneOf(d.Namespace, "apps/v1", "Deployment")
		givenBudget(t, b, replicas)
		end, stop := world.Always(t, d.Namespace, story.AtLeastReady(replicas-1)), asking(t, d.Namespace)
		moved := moveManager(t)
		drain(t, d.Namespace)
		moved()
		assert.Positive(t, stop())
		guards(t, b, replicas)
		end()
	})
	t.Run("beside a rollout", func(t *testing.T) {
		set := newCloneSet(world.Namespace(t), replicas, clonesets.InPlaceIfPossible)
		set.Spec.Template.Labels[storyLabel] = set.Namespace
		require.NoError(t, world.Client.Create(t.Context(), set))
		settles(t, set, "v1", replicas)
		b := oneOf(set.Namespace, "apps.kruise.io/v1beta1", "CloneSet")
		givenBudget(t, b, replicas)
		end := world.Always(t, set.Namespace, story.AtLeastReady(replicas-1))
		story.Edit(t, world, set, func(set *clonesets.CloneSet) { set.Spec.Template.Spec.Containers[0].Image = app + "v2" })
		drain(t, set.Namespace)
		settles(t, set, "v2", replicas)
		guards(t, b, replicas)
		end()
	})
}

// drain drains the node that has most pods of the namespace, of these, and returns what kubectl says.
func drain(t *testing.T, namespace string) (node, out string) {
	t.Helper()
	node = crowded(story.Active(world.Pods(t, namespace)))
	t.Cleanup(func() { uncordon(t, node) })
	out, err := world.Kubectl(t, "", "drain", node, "--ignore-daemonsets", "--pod-selector="+storyLabel+"="+namespace, "--timeout=90s")
	require.NoError(t, err, out)
	return node, out
}

func uncordon(t *testing.T, node string) {
	t.Helper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"unschedulable":null}}`))
	o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	assert.NoError(t, world.Client.Patch(context.WithoutCancel(t.Context()), o, patch))
}

// crowded returns the node with the most of the pods.
func crowded(pods []corev1.Pod) (node string) {
	on := map[string]int{}
	for i := range pods {
		name := pods[i].Spec.NodeName
		if on[name]++; on[name] > on[node] {
			node = name
		}
	}
	return node
}

// Somebody evicts and deletes all pods of an application again and again, and the operator is killed meanwhile.
func TestAKilledOperatorGrantsNothingTwice(t *testing.T) {
	const replicas = 4
	d := givenDeployment(t, world.Namespace(t), replicas)
	b := oneOf(d.Namespace, "apps/v1", "Deployment")
	givenBudget(t, b, replicas)
	before := story.Active(world.Pods(t, d.Namespace))
	end := world.Always(t, d.Namespace, story.AtLeastReady(replicas-1))
	gone := map[string]bool{}
	for _, n := range []int{1, 2, replicas} {
		story.Eventually(t, fmt.Sprintf("the end of %d pods", n), func(ctx context.Context) error {
			for i := range before {
				o := &before[i]
				remove := func() error { return world.Client.Delete(ctx, o) }
				if i%2 == 0 {
					remove = func() error { return evict(ctx, o) }
				}
				if !gone[o.Name] && len(gone) < n && remove() == nil {
					gone[o.Name] = true
				}
			}
			return story.Want(len(gone) == n, "there were %d", len(gone))
		})
		if n < replicas {
			world.KillOperator(t, "budget")
		}
	}
	guards(t, b, replicas)
	end()
}

// A PodDisruptionBudget refuses the eviction that the budget has granted: the grant stays open for a while.
func TestAnOpenGrantOutlivesTheOperator(t *testing.T) {
	pods := givenPods(t, world.Namespace(t), "a", "b")
	b := atLeast(pods[0].Namespace, 1)
	givenBudget(t, b, 2)
	givenDisruptionBudget(t, b.Namespace, 2)
	require.ErrorContains(t, evict(t.Context(), pods[0]), "disruption budget")
	world.ScaleOperator(t, "budget", 0)
	t.Cleanup(func() { world.ScaleOperator(t, "budget", 1) })
	require.Error(t, world.Client.Delete(t.Context(), pods[1]), "nobody knows whether it can be spared")
	world.ScaleOperator(t, "budget", 1)
	story.Eventually(t, "the answer of the new operator", func(ctx context.Context) error {
		err := world.Client.Delete(ctx, pods[1])
		require.Error(t, err)
		return story.Want(apierrors.IsForbidden(err) && strings.Contains(err.Error(), "a (deletion allowed"), "%v", err)
	})
	story.Eventually(t, "the end of the grant", func(ctx context.Context) error { return world.Client.Delete(ctx, pods[1]) })
}
