package plan

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/seeds"
	"github.com/flotilla-project/flotilla/core/workloads/ordering"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/subsets"
)

// I-WS-3: a workload that has its pods deleted by their costs, whatever its subsets and pods are, first loses the pods of no
// subset, then those beyond the limits and then those of the last subset, the one before it and so on. Of an older
// revision the first subset goes first. Each subset keeps its limit as long as a later one has pods.
func TestScaleInGoesFromTheLastSubsetToTheFirst(t *testing.T) {
	seeds.Each(t, 300, func(t *testing.T, seed uint64) {
		t.Helper()
		r := rand.New(rand.NewPCG(seed, 7))
		s := randomPods(r)
		pods := marked(t, s)
		for _, version := range []string{"old", "new"} {
			mine := slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool { return pod.Labels[contract.TemplateHashLabel] != version })
			scaleIn(t, s, mine, version == "new")
		}
	})
}

// randomPods is a spread over some subsets, and ready pods of two revisions in them, in a subset that was removed, and in
// none that were there before.
func randomPods(r *rand.Rand) Snapshot {
	spread := given("")
	for i := range 1 + r.IntN(4) {
		subset := v1beta1.WorkloadSpreadSubset{Name: string(rune('a' + i)), RequiredNodeSelector: in("nowhere")}
		if r.IntN(3) > 0 {
			subset.MaxReplicas = new(intstr.FromInt32(int32(r.IntN(4))))
		}
		spread.Spec.Subsets = append(spread.Spec.Subsets, subset)
	}
	s := snapshot(spread)
	s.Target.Versioned, s.Target.Latest = replicaSets(), "new"
	for i := range r.IntN(20) {
		version := []string{"old", "new"}[r.IntN(2)]
		options := []gen.PodOption{hash(version), gen.Ready(gen.Epoch().Add(time.Duration(r.IntN(30)) * time.Second)), gen.OnNode("node-a")}
		if i := r.IntN(len(spread.Spec.Subsets) + 2); i < len(spread.Spec.Subsets) {
			options = append(options, member(spread.Spec.Subsets[i].Name))
		} else if i == len(spread.Spec.Subsets) {
			options = append(options, member("removed"))
		}
		s.Pods = append(s.Pods, ready(fmt.Sprint("p", i), options...))
	}
	return s
}

// marked returns the pods as the plan writes them.
func marked(t *testing.T, s Snapshot) (pods []*corev1.Pod) {
	t.Helper()
	written := map[string]map[string]any{}
	for _, step := range compute(t, s).Steps {
		for _, a := range step.Actions {
			written[a.Object.GetName()] = a.Patches[0].Body["metadata"].(map[string]any)["annotations"].(map[string]any)
		}
	}
	for _, pod := range s.Pods {
		pod = pod.DeepCopy()
		for key, value := range written[pod.Name] {
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, key, value.(string))
		}
		pods = append(pods, pod)
	}
	return pods
}

// scaleIn deletes the pods of a revision one by one, as a CloneSet and a ReplicaSet do.
func scaleIn(t *testing.T, s Snapshot, pods []*corev1.Pod, latest bool) {
	t.Helper()
	var states []podstate.State
	members := map[int]int{}
	for _, pod := range pods {
		states = append(states, podstate.Of(pod, s.Now, 0))
		m, _ := subsets.MatchOf(pod)
		members[subsets.Index(s.Spread, m.Subset)]++
	}
	limits := subsets.Limits(s.Spread, nil)
	beyond := func(i int) bool {
		return i != subsets.None && limits[i] != subsets.Unlimited && members[i] > int(limits[i])
	}
	last := func(a, b int) int { return cmp.Compare(b, a) }
	if !latest {
		last = func(a, b int) int { return cmp.Compare(a, b) }
	}
	for _, index := range ordering.ForDeletion(states, nil) {
		m, _ := subsets.MatchOf(pods[index])
		got := subsets.Index(s.Spread, m.Subset)
		left := slices.SortedFunc(maps.Keys(members), last)
		want := left[0]
		if members[subsets.None] > 0 {
			want = subsets.None
		} else if i := slices.IndexFunc(left, beyond); i >= 0 {
			want = left[i]
		}
		require.Equal(t, want, got, "of %v pods %s goes, with cost %s", members, pods[index].Name, pods[index].Annotations[contract.PodDeletionCostAnnotation])
		if members[got]--; members[got] == 0 {
			delete(members, got)
		}
	}
	assert.Empty(t, members)
}

// What a limit is lowered to, and what it is raised to, is what is left and what is filled: 3 and 3, then 2 and 2 of four,
// then 4 and 4 of eight.
func TestChangedLimitsAreMetByScaling(t *testing.T) {
	s := snapshot(given("a=3 b=3"), slices.Concat(many("a", 3), many("b", 3))...)
	for i := range s.Spread.Spec.Subsets {
		s.Spread.Spec.Subsets[i].MaxReplicas = new(intstr.FromInt32(2))
	}
	pods := marked(t, s)
	var states []podstate.State
	for _, pod := range pods {
		states = append(states, podstate.Of(pod, s.Now, 0))
	}
	s.Pods = nil
	for _, index := range ordering.ForDeletion(states, nil)[2:] {
		s.Pods = append(s.Pods, pods[index])
	}
	p := compute(t, s)
	assert.Empty(t, p.Steps, "the costs are right")
	assert.Equal(t, "a 2/0 b 2/0", count(p.Status.SubsetStatuses))

	for i := range s.Spread.Spec.Subsets {
		s.Spread.Spec.Subsets[i].MaxReplicas = new(intstr.FromInt32(4))
	}
	p = compute(t, s)
	assert.Empty(t, p.Steps)
	s.Spread.Status = *p.Status
	b := subsets.Open(s.Spread, subsets.Limits(s.Spread, nil))
	var names []string
	for i := range 4 {
		names = append(names, strconv.Itoa(i))
	}
	assert.Equal(t, []string{"a", "a", "b", "b"}, admit(b, nobody, names...))
}
