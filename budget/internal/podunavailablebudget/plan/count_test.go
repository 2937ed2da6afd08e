package plan

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/disruption"
)

// uncontrolled returns pods that no workload owns.
func uncontrolled(n int) []*corev1.Pod {
	all := ready(n)
	for _, pod := range all {
		pod.OwnerReferences = nil
	}
	return all
}

func TestNumbers(t *testing.T) {
	label := gen.Label(v1beta1.UnavailableLabelPrefix+"x", "")
	notReady := pods("broken", 1, gen.NotReady(gen.Epoch()))
	terminating := pods("going", 3, gen.Ready(gen.Epoch()), gen.Terminating())
	cases := []struct {
		name      string
		budget    *v1beta1.PodUnavailableBudget
		pods      []*corev1.Pod
		workloads []disruption.Workload
		want      [4]int32 // total, desired, current, allowed
	}{
		{"maxUnavailable in percent", budget(maxUnavailable("60%")), ready(5), workload(5), [4]int32{5, 2, 5, 3}},
		{"minAvailable in percent", budget(minAvailable("40%")), ready(5), workload(5), [4]int32{5, 2, 5, 3}},
		{"30% of ten", budget(maxUnavailable("30%")), ready(10), workload(10), [4]int32{10, 7, 10, 3}},
		{"surplus pods are not shown as allowed", budget(maxUnavailable("30%")), slices.Concat(ready(12), notReady), workload(10), [4]int32{10, 7, 12, 3}},
		{"terminating pods", budget(maxUnavailable("30%")), slices.Concat(ready(9), terminating, notReady), workload(10), [4]int32{10, 7, 9, 2}},
		{"scaled to zero", budget(maxUnavailable("30%")), ready(10), workload(0), [4]int32{0, 0, 10, 0}},
		{"the target is scaled to zero", budget(maxUnavailable("30%"), targeted), ready(10), workload(0), [4]int32{0, 0, 0, 0}},
		{"the target is scaled to zero, with the user's number", budget(maxUnavailable("30%"), targeted, protectedReplicas(10)), ready(10), workload(0), [4]int32{10, 7, 10, 3}},
		{"the workload is gone", budget(maxUnavailable("0")), ready(3), nil, [4]int32{0, 0, 3, 0}},
		{"the user's number", budget(maxUnavailable("30%"), protectedReplicas(15)), ready(10), workload(10), [4]int32{15, 10, 10, 0}},
		{"the user's number in an annotation", budget(maxUnavailable("30%"), func(b *v1beta1.PodUnavailableBudget) {
			b.Annotations = map[string]string{v1beta1.ProtectTotalReplicasAnnotation: "15"}
		}), ready(10), workload(10), [4]int32{15, 10, 10, 0}},
		{"a percentage of one", budget(maxUnavailable("30%")), ready(1), workload(1), [4]int32{1, 0, 1, 1}},
		{"10% of fifteen", budget(maxUnavailable("10%")), ready(15), workload(15), [4]int32{15, 13, 15, 2}},
		{"0%", budget(maxUnavailable("0%")), ready(10), workload(10), [4]int32{10, 10, 10, 0}},
		{"100%", budget(maxUnavailable("100%")), ready(10), workload(10), [4]int32{10, 0, 10, 10}},
		{"a number above the replicas", budget(maxUnavailable("11")), ready(10), workload(10), [4]int32{10, 0, 10, 10}},
		{"a minimum above the replicas", budget(minAvailable("100")), ready(5), workload(10), [4]int32{10, 100, 5, 0}},
		{"a minimum that is met", budget(minAvailable("50%")), ready(5), workload(10), [4]int32{10, 5, 5, 0}},
		{"80% of ten", budget(minAvailable("80%")), ready(10), workload(10), [4]int32{10, 8, 10, 2}},
		{"two workloads", budget(maxUnavailable("25%")), ready(10), append(workload(5), workload(5)...), [4]int32{10, 7, 10, 3}},
		{"one of two is scaled to zero", budget(maxUnavailable("25%")), ready(5), append(workload(5), workload(0)...), [4]int32{5, 3, 5, 2}},
		{"no pod yet", budget(maxUnavailable("1")), nil, nil, [4]int32{0, 0, 0, 0}},
		{"a label makes a pod unavailable", budget(maxUnavailable("1")), slices.Concat(ready(1), pods("labelled", 1, gen.Ready(gen.Epoch()), label)), workload(2), [4]int32{2, 1, 1, 0}},
		{"a minimum of a workload that is gone", budget(minAvailable("2")), ready(3), nil, [4]int32{0, 0, 3, 0}},
		{"a minimum of a workload that is scaled to zero", budget(minAvailable("2")), ready(3), workload(0), [4]int32{0, 0, 3, 0}},
		{"a minimum of pods without a workload", budget(minAvailable("2")), uncontrolled(3), nil, [4]int32{0, 2, 3, 1}},
		{"a minimum of pods without a controller whose target is scaled to zero", budget(minAvailable("2"), targeted), uncontrolled(3), workload(0), [4]int32{0, 0, 0, 0}},
		{"a minimum of pods without a controller beside a workload that is scaled to zero", budget(minAvailable("2")), uncontrolled(3), workload(0), [4]int32{0, 2, 3, 1}},
		{"a minimum above the replicas that surplus pods meet", budget(minAvailable("12")), ready(13), workload(10), [4]int32{10, 12, 13, 1}},
		{"both limits are set", budget(maxUnavailable("1"), minAvailable("1")), ready(5), workload(5), [4]int32{5, 4, 5, 1}},
		{"no limit is set", budget(), ready(5), workload(5), [4]int32{5, 5, 5, 0}},
		{"a limit that cannot be read", budget(maxUnavailable("many")), ready(5), workload(5), [4]int32{5, 5, 5, 0}},
		{"unknown replicas", budget(maxUnavailable("1")), ready(3), []disruption.Workload{{Replicas: 3, Unknown: disruption.ReasonNoScale}}, [4]int32{3, 2, 3, 1}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			p := compute(t, Snapshot{Budget: tc.budget, Pods: tc.pods, Workloads: tc.workloads})
			s := p.Status
			assert.Equal(t, tc.want, [4]int32{s.TotalReplicas, s.DesiredAvailable, s.CurrentAvailable, s.UnavailableAllowed})
		})
	}
}

func TestPodsThatAreAboutToLeaveServiceDoNotCount(t *testing.T) {
	for name, pod := range map[string]gen.PodOption{
		"its update begins": func(pod *corev1.Pod) {
			gen.ReadinessGate(contract.InPlaceUpdateReady)(pod)
			gen.Condition(contract.InPlaceUpdateReady, corev1.ConditionFalse, gen.Epoch())(pod)
		},
		"its node has not seen its spec": func(pod *corev1.Pod) { pod.Generation, pod.Status.ObservedGeneration = 3, 2 },
	} {
		t.Run(name, func(t *testing.T) {
			changed := gen.Pod("web", gen.Ready(gen.Epoch()), pod)
			assert.False(t, disruption.IsAvailable(changed))
			assert.True(t, disruption.IsProtected(changed), "it serves until its node knows, and nobody else's grant may meet it")
		})
	}
	free := gen.Pod("web", gen.Ready(gen.Epoch()), gen.Condition(contract.KruisePodReady, corev1.ConditionFalse, gen.Epoch()))
	assert.True(t, disruption.IsAvailable(free), "a condition without its readiness gate means nothing")
}

func TestConditionsTellWhatIsInTheWay(t *testing.T) {
	s := Snapshot{Budget: budget(maxUnavailable("1")), Pods: slices.Concat(ready(1), pods("broken", 1, gen.NotReady(gen.Epoch()))), Workloads: workload(2)}
	p := compute(t, s)
	c := meta.FindStatusCondition(p.Status.Conditions, disruption.ConditionExhausted)
	require.NotNil(t, c)
	assert.Equal(t, metav1.ConditionTrue, c.Status)
	assert.Equal(t, "broken-000 (not ready)", c.Message)

	s.Workloads = []disruption.Workload{{Name: "Rollout web", Replicas: 2, Unknown: disruption.ReasonForbidden, Message: "no right"}}
	s.Shared, s.SharedPod = "other", "web-000"
	p = compute(t, s)
	assert.Contains(t, meta.FindStatusCondition(p.Status.Conditions, disruption.ConditionReplicasUnknown).Message, "Rollout web could not be read (no right)")

	s.Pods = nil
	for _, total := range []*int32{nil, new(int32(3))} {
		s.Budget.Spec.ProtectTotalReplicas = total
		assert.Equal(t, "the budget has no effect: the pods of Rollout web could not be listed (no right)",
			meta.FindStatusCondition(Compute(s).Status.Conditions, disruption.ConditionReplicasUnknown).Message)
	}
	assert.Contains(t, meta.FindStatusCondition(p.Status.Conditions, disruption.ConditionConflict).Message, "PodUnavailableBudget other also covers pod web-000")

	s.Budget = budget(maxUnavailable("1"), protectedReplicas(2), func(b *v1beta1.PodUnavailableBudget) { b.Status.Conditions = p.Status.Conditions })
	s.Pods, s.Shared = ready(2), ""
	p = compute(t, s)
	require.Len(t, p.Status.Conditions, 1)
	assert.Equal(t, metav1.ConditionFalse, p.Status.Conditions[0].Status)
}

// Also after the grant of a removal has been carried out, a refused user reads what the budget waits for.
func TestPodsThatLeaveAndPodsToComeAreInTheWay(t *testing.T) {
	leaving := pods("leaving", 1, gen.Ready(gen.Epoch()), gen.Terminating())
	for name, tc := range map[string]struct {
		pods []*corev1.Pod
		want string
	}{
		"a pod leaves":                      {slices.Concat(ready(2), leaving), "leaving-000 (terminating)"},
		"a pod is missing":                  {ready(2), "1 of 3 pods not created"},
		"both":                              {slices.Concat(ready(1), leaving), "leaving-000 (terminating), 1 of 3 pods not created"},
		"a pod that has ended is no longer": {slices.Concat(ready(2), pods("ended", 1, gen.Phase(corev1.PodFailed))), "1 of 3 pods not created"},
	} {
		t.Run(name, func(t *testing.T) {
			p := compute(t, Snapshot{Budget: budget(maxUnavailable("1")), Pods: tc.pods, Workloads: workload(3)})
			c := meta.FindStatusCondition(p.Status.Conditions, disruption.ConditionExhausted)
			require.NotNil(t, c)
			assert.Equal(t, tc.want, c.Message)
		})
	}
}

func TestEventsAreAboutNewSpecs(t *testing.T) {
	fresh := func(b *v1beta1.PodUnavailableBudget) { b.Status.ObservedGeneration = 0 }
	p := compute(t, Snapshot{Budget: budget(maxUnavailable("1"), fresh)})
	require.Len(t, p.Notices, 1)
	assert.Equal(t, disruption.EventNoPods, p.Notices[0].Reason)
	p = compute(t, Snapshot{Budget: budget(maxUnavailable("x"), fresh)})
	require.Len(t, p.Notices, 1)
	assert.Equal(t, disruption.EventLimitFailed, p.Notices[0].Reason)
	require.Error(t, p.Err)
	p = compute(t, Snapshot{Budget: budget(maxUnavailable("1"))})
	assert.Empty(t, p.Notices)
}
