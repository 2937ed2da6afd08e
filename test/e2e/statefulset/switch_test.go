package statefulset

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/story"
)

// builtIn returns a StatefulSet of Kubernetes with the spec of ours.
func builtIn(set *v1beta1.StatefulSet) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: set.Name, Namespace: set.Namespace},
		Spec: appsv1.StatefulSetSpec{
			Replicas:             set.Spec.Replicas,
			PodManagementPolicy:  set.Spec.PodManagementPolicy,
			Selector:             set.Spec.Selector,
			Template:             set.Spec.Template,
			VolumeClaimTemplates: set.Spec.VolumeClaimTemplates,
			ServiceName:          set.Spec.ServiceName,
			UpdateStrategy:       appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType},
		},
	}
}

// withoutGates removes the readiness gates from the set and lets updates recreate its pods, like a set from an operator
// without in-place updates.
func withoutGates(set *v1beta1.StatefulSet) {
	recreating(set)
	set.Spec.Template.Spec.ReadinessGates = nil
}

func nativeSettles(t *testing.T, set *appsv1.StatefulSet) {
	t.Helper()
	story.Reaches(t, world, set, "the end of the rollout", func(set *appsv1.StatefulSet) error {
		s, n := set.Status, *set.Spec.Replicas
		if s.ObservedGeneration != set.Generation {
			return fmt.Errorf("status describes generation %d of %d", s.ObservedGeneration, set.Generation)
		}
		partition := int32(0)
		if r := set.Spec.UpdateStrategy.RollingUpdate; r != nil && r.Partition != nil {
			partition = *r.Partition
		}
		pods := story.Active(world.Pods(t, set.Namespace))
		return story.Want(s.Replicas == n && s.ReadyReplicas == n && s.UpdatedReplicas >= n-partition && len(pods) == int(n),
			"status is %+v with %d pods", s, len(pods))
	})
}

// The documented migration from the built-in StatefulSet: its pods are orphaned and adopted, and none of them is
// changed otherwise.
func TestSwitchFromTheBuiltInStatefulSet(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 3, ordered, storing, withoutGates)
	native := builtIn(set)
	require.NoError(t, world.Client.Create(t.Context(), native))
	nativeSettles(t, native)
	before := podsOf(t, set)
	containers, bound := story.ContainerIDs(before), volumes(claimsOf(t, set))

	end := world.Always(t, set.Namespace, story.AtLeastReady(3))
	out, err := world.Kubectl(t, "", "-n", set.Namespace, "delete", "statefulset.apps", "web", "--cascade=orphan", "--wait=true")
	require.NoError(t, err, out)
	require.NoError(t, world.Client.Create(t.Context(), set))
	settles(t, set)
	after := podsOf(t, set)
	assert.Equal(t, story.Identities(before), story.Identities(after))
	assert.Equal(t, containers, story.ContainerIDs(after))
	assert.EqualValues(t, 3, set.Status.UpdatedReplicas)
	for i := range after {
		assert.True(t, metav1.IsControlledBy(&after[i], set), after[i].Name)
		assert.Equal(t, set.Status.UpdateRevision, after[i].Labels[contract.RevisionLabel], after[i].Name)
	}
	end()

	end = world.Always(t, set.Namespace, story.AtLeastReady(2))
	rolls(t, set, image("v2"))
	end()
	assert.Equal(t, bound, volumes(claimsOf(t, set)))
	for _, o := range story.Active(podsOf(t, set)) {
		assert.Equal(t, []string{"v1", "v2"}, journal(t, &o), o.Name)
	}
	rolls(t, set, replicas(4))
	assert.Equal(t, []string{"web-0", "web-1", "web-2", "web-3"}, names(podsOf(t, set)))
}

// A released pod is adopted again. A pod that the selector matches but whose name is not one of the set's is not
// adopted.
func TestOrphansAreTakenByName(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 2)
	givenSet(t, set)
	loose := &podsOf(t, set)[1]
	uid := loose.UID
	stranger := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web-x", Namespace: set.Namespace, Labels: set.Spec.Template.Labels},
		Spec:       corev1.PodSpec{Containers: set.Spec.Template.Spec.Containers},
	}
	require.NoError(t, world.Client.Create(t.Context(), stranger))
	story.Edit(t, world, loose, func(o *corev1.Pod) { o.OwnerReferences = nil })
	story.Reaches(t, world, loose, "taken back", func(o *corev1.Pod) error {
		return story.Want(metav1.IsControlledBy(o, set) && o.UID == uid, "its owners are %v", o.OwnerReferences)
	})
	story.Reaches(t, world, stranger, "left alone", func(o *corev1.Pod) error {
		return story.Want(metav1.GetControllerOf(o) == nil && o.DeletionTimestamp == nil, "its owners are %v", o.OwnerReferences)
	})
}
