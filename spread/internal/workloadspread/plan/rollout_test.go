package plan

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/workloads/ordering"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/subsets"
)

// The nodes of the first subset hold as many pods as it may have, and a rollout may have one pod out of service. It ends
// only because costs of the older revision are written anew: with those that its pods have had, a pod of the last subset
// would go first, and its successor would wait for a node of the first one for ever.
func TestARolloutNeedsNoNodesBeyondTheLimit(t *testing.T) {
	const replicas, limit = 6, 3
	s := snapshot(given("a=3 b"))
	s.Target.Versioned, s.Target.Latest = replicaSets(), "new"
	for i := range replicas {
		s.Pods = append(s.Pods, born(s.Spread, fmt.Sprint("old-", i), "old", i/limit))
	}
	members := func(subset, version string) (n int) {
		for _, pod := range s.Pods {
			m, _ := subsets.MatchOf(pod)
			if m.Subset == subset && (version == "" || pod.Labels[contract.TemplateHashLabel] == version) {
				n++
			}
		}
		return n
	}
	for i := range replicas {
		s.Pods = marked(t, s)
		var old []podstate.State
		var names []string
		for _, pod := range s.Pods {
			if pod.Labels[contract.TemplateHashLabel] == "old" {
				old, names = append(old, podstate.Of(pod, s.Now, 0)), append(names, pod.Name)
			}
		}
		victim := names[ordering.ForDeletion(old, nil)[0]]
		s.Pods = slices.DeleteFunc(s.Pods, func(pod *corev1.Pod) bool { return pod.Name == victim })
		s.Spread.Status = *compute(t, s).Status
		subset := subsets.Open(s.Spread.DeepCopy(), subsets.Limits(s.Spread, nil)).Ledger("new").Admit(fmt.Sprint("new-", i), metav1.NewTime(s.Now), nil)
		s.Pods = append(s.Pods, born(s.Spread, fmt.Sprint("new-", i), "new", subset))
		require.LessOrEqual(t, members("a", ""), limit, "pod %d of the new revision waits for a node", i)
	}
	assert.Equal(t, []int{limit, replicas - limit}, []int{members("a", "new"), members("b", "new")})
}

// born is a ready pod as admission makes it.
func born(spread *v1beta1.WorkloadSpread, name, version string, subset int) *corev1.Pod {
	pod := ready(name, member(spread.Spec.Subsets[subset].Name), hash(version), gen.OnNode("node-"+spread.Spec.Subsets[subset].Name))
	subsets.SetCost(pod, spread, subset)
	return pod
}
