package daemonset

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/contract"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/story"
)

// builtIn returns a DaemonSet of Kubernetes with the spec of ours.
func builtIn(set *v1beta1.DaemonSet) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: set.Name, Namespace: set.Namespace},
		Spec: appsv1.DaemonSetSpec{
			Selector: set.Spec.Selector, Template: *set.Spec.Template.DeepCopy(),
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{
				Type:          appsv1.RollingUpdateDaemonSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: new(intstr.FromInt32(1))},
			},
		},
	}
}

func nativeSettles(t *testing.T, set *appsv1.DaemonSet) {
	t.Helper()
	story.Reaches(t, world, set, "the end of the rollout", func(set *appsv1.DaemonSet) error {
		s, n := set.Status, int32(len(nodes()))
		return story.Want(s.ObservedGeneration == set.Generation && s.NumberAvailable == n && s.UpdatedNumberScheduled == n, "status is %+v", s)
	})
}

// The documented migration from the built-in DaemonSet: its pods and their revision are orphaned and adopted, and none
// of the pods is changed otherwise.
func TestSwitchFromTheBuiltInDaemonSet(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t))
	native := builtIn(set)
	require.NoError(t, world.Client.Create(t.Context(), native))
	nativeSettles(t, native)
	n := len(nodes())
	before := podsOf(t, set)
	hash := before[0].Labels[contract.RevisionLabel]

	end := world.Always(t, set.Namespace, story.AtLeastReady(n))
	out, err := world.Kubectl(t, "", "-n", set.Namespace, "delete", "daemonset.apps", "web", "--cascade=orphan", "--wait=true")
	require.NoError(t, err, out)
	givenSet(t, set)
	updated(t, set, n)
	after := podsOf(t, set)
	assert.Equal(t, story.Identities(before), story.Identities(after))
	assert.Equal(t, story.ContainerIDs(before), story.ContainerIDs(after))
	assert.Equal(t, hash, set.Status.UpdateRevision, "the revision keeps its hash")
	for i := range after {
		assert.True(t, metav1.IsControlledBy(&after[i], set), after[i].Name)
		assert.Equal(t, before[i].Labels, after[i].Labels, after[i].Name)
	}
	end()

	end = world.Always(t, set.Namespace, story.AtLeastReady(n-1))
	rolls(t, set, image("v2"), inPlace)
	updated(t, set, n)
	recreated := story.Identities(podsOf(t, set))
	rolls(t, set, image("v3"))
	updated(t, set, n)
	end()
	assert.Equal(t, recreated, story.Identities(podsOf(t, set)), "from the second update on pods change in place")
}
