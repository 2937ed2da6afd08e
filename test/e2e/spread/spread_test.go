package spread

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/story"
)

// twoThenTheRest returns subset a with a limit of two pods, and b without.
func twoThenTheRest(label string) []v1beta1.WorkloadSpreadSubset {
	return []v1beta1.WorkloadSpreadSubset{newSubset("a", label, new(intstr.FromInt32(2))), newSubset("b", label, nil)}
}

// Pods fill the first subset and go on to the next, and those that came last go first.
func TestSubsetsFillInOrderAndEmptyFromTheLast(t *testing.T) {
	forKinds(t, []kind{deployments, cloneSets}, func(t *testing.T, k kind) {
		t.Helper()
		namespace := world.Namespace(t)
		spread := k.givenSpread(t, namespace, twoThenTheRest(zones(t, namespace)))
		workload := k.givenWorkload(t, namespace, 4)
		settlesWith(t, spread, map[string]int{"a in zone a, cost 200": 2, "b in zone b, cost 100": 2})
		for _, o := range world.Pods(t, namespace) {
			assert.Equal(t, subsetOf(t, &o), o.Labels["subset"], "the patch is applied")
		}
		scales(t, spread, workload, 6, map[string]int{"a in zone a, cost 200": 2, "b in zone b, cost 100": 4})
		scales(t, spread, workload, 3, map[string]int{"a in zone a, cost 200": 2, "b in zone b, cost 100": 1})
		scales(t, spread, workload, 1, map[string]int{"a in zone a, cost 200": 1})
		assert.EqualValues(t, 1, spread.Status.SubsetStatuses[0].MissingReplicas)
		assert.EqualValues(t, -1, spread.Status.SubsetStatuses[1].MissingReplicas)
	})
}

// A lowered limit deletes nothing: pods beyond it are the first to go.
func TestPodsBeyondALoweredLimitGoFirst(t *testing.T) {
	forKinds(t, []kind{deployments, cloneSets}, func(t *testing.T, k kind) {
		t.Helper()
		namespace := world.Namespace(t)
		spread := k.givenSpread(t, namespace, twoThenTheRest(zones(t, namespace)))
		workload := k.givenWorkload(t, namespace, 4)
		settlesWith(t, spread, map[string]int{"a in zone a, cost 200": 2, "b in zone b, cost 100": 2})
		story.Edit(t, world, spread, func(s *v1beta1.WorkloadSpread) { s.Spec.Subsets[0].MaxReplicas = new(intstr.FromInt32(1)) })
		settlesWith(t, spread, map[string]int{"a in zone a, cost 200": 1, "a in zone a, cost -100": 1, "b in zone b, cost 100": 2})
		scales(t, spread, workload, 3, map[string]int{"a in zone a, cost 200": 1, "b in zone b, cost 100": 2})
	})
}

// Percentages follow the replicas of the workload.
func TestPercentagesFollowReplicas(t *testing.T) {
	forKinds(t, []kind{deployments, cloneSets}, func(t *testing.T, k kind) {
		t.Helper()
		namespace := world.Namespace(t)
		label := zones(t, namespace)
		spread := k.givenSpread(t, namespace, []v1beta1.WorkloadSpreadSubset{
			newSubset("a", label, new(intstr.FromString("30%"))), newSubset("b", label, nil),
		})
		workload := k.givenWorkload(t, namespace, 3)
		settlesWith(t, spread, map[string]int{"a in zone a, cost 200": 1, "b in zone b, cost 100": 2})
		scales(t, spread, workload, 7, map[string]int{"a in zone a, cost 200": 3, "b in zone b, cost 100": 4})
	})
}

// Pods that no node of their subset can take are replaced by pods of a later one, and no others are.
func TestPodsMoveOnFromASubsetWithoutNodes(t *testing.T) {
	forKinds(t, []kind{deployments, cloneSets}, func(t *testing.T, k kind) {
		t.Helper()
		namespace := world.Namespace(t)
		label := zones(t, namespace)
		spread := k.givenSpread(t, namespace, []v1beta1.WorkloadSpreadSubset{
			newSubset("none", label, new(intstr.FromInt32(2))), newSubset("b", label, nil),
		}, func(s *v1beta1.WorkloadSpread) {
			s.Spec.ScheduleStrategy = v1beta1.WorkloadSpreadScheduleStrategy{
				Type: v1beta1.AdaptiveStrategy, Adaptive: &v1beta1.AdaptiveSettings{RescheduleCriticalSeconds: new(int32(3))},
			}
		})
		k.givenWorkload(t, namespace, 3)
		settlesWith(t, spread, map[string]int{"b in zone b, cost 100": 3})
		require.Len(t, spread.Status.SubsetStatuses, 2)
		for i, want := range []string{v1beta1.ReasonPodUnschedulable, v1beta1.ReasonSufficient} {
			conditions := spread.Status.SubsetStatuses[i].Conditions
			require.Len(t, conditions, 1)
			assert.Equal(t, want, conditions[0].Reason)
		}
	})
}

// Each revision of a Deployment has the full room: a rollout with a surge ends as it began.
func TestARolloutKeepsTheSpread(t *testing.T) {
	forKinds(t, []kind{deployments}, func(t *testing.T, k kind) {
		t.Helper()
		namespace := world.Namespace(t)
		spread := k.givenSpread(t, namespace, twoThenTheRest(zones(t, namespace)))
		workload := k.givenWorkload(t, namespace, 4)
		settled := map[string]int{"a in zone a, cost 200": 2, "b in zone b, cost 100": 2}
		settlesWith(t, spread, settled)
		deployment, ok := workload.(*appsv1.Deployment)
		require.True(t, ok)
		story.Edit(t, world, deployment, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = app + "v2" })
		story.Reaches(t, world, deployment, "updated", func(d *appsv1.Deployment) error {
			s := d.Status
			return story.Want(s.ObservedGeneration == d.Generation && s.UpdatedReplicas == 4 && s.Replicas == 4, "status is %+v", s)
		})
		settlesWith(t, spread, settled)
	})
}

// Pods that ran before come into the subset of their node, and go on running when the WorkloadSpread is deleted.
func TestRunningPodsComeInAndOutlastTheSpread(t *testing.T) {
	forKinds(t, []kind{deployments, cloneSets}, func(t *testing.T, k kind) {
		t.Helper()
		namespace := world.Namespace(t)
		label := zones(t, namespace)
		template := newTemplate()
		template.Spec.NodeSelector = map[string]string{label: "a"}
		workload := k.newWorkload(t, namespace, 3, template)
		require.NoError(t, world.Client.Create(t.Context(), workload))
		story.Eventually(t, "pods without a subset", func(context.Context) error {
			return areReady(t, world.Pods(t, namespace), map[string]int{" in zone a": 3})
		})
		before := story.Identities(world.Pods(t, namespace))

		spread := k.givenSpread(t, namespace, twoThenTheRest(label))
		settlesWith(t, spread, map[string]int{"a in zone a, cost 200": 2, "a in zone a, cost -100": 1})
		require.NoError(t, world.Client.Delete(t.Context(), spread))
		story.Gone(t, world, spread)
		end := world.Always(t, namespace, story.AtLeastReady(3))
		scale(t, workload, 4) // a new pod shows that the deletion is known
		story.Reaches(t, world, workload, "its new pod", func(client.Object) error {
			pods := world.Pods(t, namespace)
			return story.Want(len(pods) == 4, "there are %d pods", len(pods))
		})
		end()
		pods := world.Pods(t, namespace)
		for i := range pods {
			assert.Nil(t, pods[i].DeletionTimestamp, pods[i].Name)
		}
		assert.Subset(t, story.Identities(pods), before)
	})
}

// Kinds that know no deletion costs, and a ReplicaSet of its own, are spread as well.
func TestOtherKindsAreSpread(t *testing.T) {
	costs := map[string]int{"a in zone a, cost 200": 2, "b in zone b, cost 100": 1}
	none := map[string]int{"a in zone a": 2, "b in zone b": 1}
	want := map[string]map[string]int{"ReplicaSet": costs, "StatefulSet": none, "Job": none}
	forKinds(t, []kind{replicaSets, statefulSets, jobs}, func(t *testing.T, k kind) {
		t.Helper()
		namespace := world.Namespace(t)
		spread := k.givenSpread(t, namespace, twoThenTheRest(zones(t, namespace)))
		k.givenWorkload(t, namespace, 3)
		settlesWith(t, spread, want[k.named(t).Kind])
	})
}
