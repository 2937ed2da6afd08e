package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/subsets"
)

var match = v1beta1.Match{Name: "web", Subset: "a", UID: "u"}

func required(pod *corev1.Pod) []corev1.NodeSelectorTerm {
	return pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
}

func TestInjectAddsTheRulesOfTheSubset(t *testing.T) {
	pod := gen.Pod("p")
	pod.Spec.Tolerations = []corev1.Toleration{{Key: "own"}}
	subset := v1beta1.WorkloadSpreadSubset{
		Name: "a", RequiredNodeSelector: in("a"), Tolerations: []corev1.Toleration{{Key: "zone"}},
		PreferredNodeSelector: []corev1.PreferredSchedulingTerm{{Weight: 3, Preference: *in("b")}},
	}
	subset.Patch.Raw = []byte(`{"metadata":{"labels":{"subset":"a"},"annotations":{"apps.kruise.io/matched-workloadspread":"x"}}}`)
	require.NoError(t, subsets.Inject(pod, &subset, match, nil))

	assert.Equal(t, []corev1.NodeSelectorTerm{*in("a")}, required(pod))
	assert.Equal(t, subset.PreferredNodeSelector, pod.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	assert.Equal(t, []corev1.Toleration{{Key: "own"}, {Key: "zone"}}, pod.Spec.Tolerations)
	assert.Equal(t, "a", pod.Labels["subset"])
	assert.JSONEq(t, `{"name":"web","subset":"a","uid":"u"}`, pod.Annotations[v1beta1.MatchedAnnotation], "a patch cannot change it")
}

func TestInjectMergesContainersByName(t *testing.T) {
	pod := gen.Pod("p")
	name := pod.Spec.Containers[0].Name
	subset := v1beta1.WorkloadSpreadSubset{Name: "a"}
	subset.Patch.Raw = []byte(`{"spec":{"containers":[{"name":"` + name + `","env":[{"name":"ZONE","value":"a"}]}]}}`)
	require.NoError(t, subsets.Inject(pod, &subset, match, nil))
	require.Len(t, pod.Spec.Containers, 1)
	assert.Equal(t, "a", pod.Spec.Containers[0].Env[len(pod.Spec.Containers[0].Env)-1].Value)
	assert.Nil(t, pod.Spec.Affinity)
}

// Terms are alternatives: each must be narrowed.
func TestEachRequiredTermIsNarrowed(t *testing.T) {
	pod := gen.Pod("p")
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{*in("x"), *in("y")}},
	}}
	require.NoError(t, subsets.Inject(pod, &v1beta1.WorkloadSpreadSubset{Name: "a", RequiredNodeSelector: in("a")}, match, nil))
	require.Len(t, required(pod), 2)
	for i, zone := range []string{"x", "y"} {
		assert.Equal(t, append(in(zone).MatchExpressions, in("a").MatchExpressions...), required(pod)[i].MatchExpressions)
	}
}

func TestAnotherPriorityClassHasAnotherPriority(t *testing.T) {
	preempts, never := new(corev1.PreemptLowerPriority), new(corev1.PreemptNever)
	for patch, want := range map[string]struct {
		priority *int32
		policy   *corev1.PreemptionPolicy
	}{
		`{"spec":{"priorityClassName":"high"}}`:                            {},
		`{"spec":{"priorityClassName":"high","preemptionPolicy":"Never"}}`: {policy: never},
		`{"spec":{"priorityClassName":"low"}}`:                             {new(int32(5)), preempts},
		``:                                                                 {new(int32(5)), preempts},
		`null`:                                                             {new(int32(5)), preempts},
	} {
		pod := gen.Pod("p")
		pod.Spec.PriorityClassName, pod.Spec.Priority, pod.Spec.PreemptionPolicy = "low", new(int32(5)), preempts
		subset := v1beta1.WorkloadSpreadSubset{Name: "a"}
		subset.Patch.Raw = []byte(patch)
		require.NoError(t, subsets.Inject(pod, &subset, match, nil))
		assert.Equal(t, want.priority, pod.Spec.Priority, patch)
		assert.Equal(t, want.policy, pod.Spec.PreemptionPolicy, patch)
	}
}

func TestAPatchThatDoesNotFitIsAnError(t *testing.T) {
	subset := v1beta1.WorkloadSpreadSubset{Name: "a"}
	subset.Patch.Raw = []byte(`{"spec":{"containers":"none"}}`)
	assert.ErrorContains(t, subsets.Inject(gen.Pod("p"), &subset, match, nil), "apply the patch of subset a")
}

// A spread that was stored before its workload may have such a patch.
func TestAPodStaysTheOneOfItsWorkload(t *testing.T) {
	for patch, want := range map[string]string{
		`{"metadata":{"labels":{"app":"other"}}}`:           "changes metadata.labels[app]",
		`{"metadata":{"labels":null}}`:                      "changes metadata.labels[app], metadata.labels[pod-template-hash]",
		`{"metadata":{"ownerReferences":null}}`:             "changes metadata.ownerReferences",
		`{"metadata":{"labels":{"other":"b","new":"n"}}}`:   "",
		`{"metadata":{"labels":{"app":"web","zone":null}}}`: "",
	} {
		pod := gen.Pod("p", hash("h"), gen.Label("app", "web"), gen.Label("other", "a"))
		subset := v1beta1.WorkloadSpreadSubset{Name: "a"}
		subset.Patch.Raw = []byte(patch)
		err := subsets.Inject(pod, &subset, match, func() []string { return []string{"app"} })
		if want == "" {
			require.NoError(t, err, patch)
			continue
		}
		assert.ErrorContains(t, err, want, patch)
	}
}
