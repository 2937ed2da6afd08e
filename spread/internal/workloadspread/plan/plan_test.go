package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/subsets"
)

// ready is a pod that was created when the spread was and is ready since then.
func ready(name string, options ...gen.PodOption) *corev1.Pod {
	return gen.Pod(name, append([]gen.PodOption{gen.Created(gen.Epoch()), gen.OnNode("node-x"), gen.Ready(gen.Epoch())}, options...)...)
}

func many(subset string, n int, options ...gen.PodOption) (pods []*corev1.Pod) {
	for i := range n {
		pods = append(pods, ready(fmt.Sprintf("%s-%d", subset, i), append(options, member(subset))...))
	}
	return pods
}

// costs is how many pods of each subset, which their names begin with, get which cost.
func costs(p Plan) string {
	n := map[string]int{}
	for _, step := range p.Steps {
		for _, a := range step.Actions {
			subset, _, _ := strings.Cut(a.Object.GetName(), "-")
			_, text, _ := strings.Cut(a.Message, "cost ")
			n[subset+" "+text]++
		}
	}
	var parts []string
	for text, count := range n {
		parts = append(parts, fmt.Sprintf("%s x%d", text, count))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

func TestDeletionCosts(t *testing.T) {
	for name, c := range map[string]struct {
		subsets string
		pods    []*corev1.Pod
		want    string
	}{
		"within and beyond": {
			"a=10 b=10 c", slices.Concat(many("a", 20), many("b", 20), many("c", 20)),
			"a -100 x10, a 300 x10, b -200 x10, b 200 x10, c 100 x20",
		},
		"a subset that was removed": {"a=2", slices.Concat(many("a", 1), many("z", 2)), "a 100 x1, z -200 x2"},
		"pods that end do not count": {
			"a=1 b", []*corev1.Pod{
				ready("a-0", member("a"), gen.Phase(corev1.PodSucceeded)), ready("a-1", member("a"), gen.Terminating()), ready("a-2", member("a")),
			}, "a 200 x1",
		},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, costs(compute(t, snapshot(given(c.subsets), c.pods...)))) })
	}
}

func TestTheLeastUsefulPodsAreBeyondTheLimit(t *testing.T) {
	p := compute(t, snapshot(given("a=1 b"), ready("a-0", member("a")), ready("a-1", member("a"), gen.NotReady(gen.Epoch())), ready("a-2", member("a"))))
	text := p.String()
	assert.Contains(t, text, "pod a-1 (Spread): cost -100")
	assert.Equal(t, "a -100 x2, a 200 x1", costs(p))
}

// The pods of older revisions leave the first subset first, so that the new ones have the room there.
func TestCostsOfOlderRevisionsAreMirrored(t *testing.T) {
	s := snapshot(given("a=3 b"), slices.Concat(many("a", 2, hash("old")), many("b", 1, hash("old")), []*corev1.Pod{ready("n-0", member("a"), hash("new"))})...)
	s.Target.Versioned, s.Target.Latest = replicaSets(), "new"
	assert.Equal(t, "a 100 x2, b 200 x1, n 200 x1", costs(compute(t, s)))

	s.Target.Latest = "" // unknown
	assert.Empty(t, compute(t, s).Steps)
	s.Target.Latest, s.Target.HasCosts = "new", false
	assert.Empty(t, compute(t, s).Steps)
}

// What is written must not decide what is written next: by the deletion cost, c would stay beyond the limit.
func TestCostsThatAreSetDecideNothing(t *testing.T) {
	restarted := ready("a-0", member("a"), gen.DeletionCost("200"), gen.Ready(gen.Epoch().Add(30*time.Second)))
	p := compute(t, snapshot(given("a=1 b"), restarted, ready("a-1", member("a"), gen.DeletionCost("-100"))))
	assert.Equal(t, "mark:\n  PatchMetadata pod a-0 (Spread): cost -100\n  PatchMetadata pod a-1 (Spread): cost 200\n", p.String())
}

// The cost that a pod is created with is what the next pass wants.
func TestNewPodsHaveTheirCost(t *testing.T) {
	s := snapshot(given("a=2 b=1 c"))
	for i, subset := range []string{"a", "a", "b", "c", "c"} {
		pod := ready(fmt.Sprint(subset, "-", i), member(subset))
		subsets.SetCost(pod, s.Spread, subsets.Index(s.Spread, subset))
		s.Pods = append(s.Pods, pod)
	}
	assert.Empty(t, compute(t, s).Steps)
}

func TestNumbersAreOfAllRevisions(t *testing.T) {
	s := snapshot(given("a=2 b"), slices.Concat(many("a", 2, hash("old")), many("b", 1, hash("new")), []*corev1.Pod{ready("z-0", member("z"), hash("new"))})...)
	s.Target.Versioned, s.Target.Latest = replicaSets(), "new"
	books := subsets.Open(s.Spread, subsets.Limits(s.Spread, nil))
	assert.Equal(t, 0, books.Ledger("new").Admit("n", metav1.NewTime(s.Now), nil))
	assert.True(t, books.Close())
	assert.Equal(t, Numbers{Without: 1, Subsets: []SubsetNumbers{
		{Name: "a", Active: 2, Coming: 1, Limit: 2}, {Name: "b", Active: 1, Limit: subsets.Unlimited},
	}}, compute(t, s).Numbers())
}

func TestWhatIsSetIsNotWritten(t *testing.T) {
	assert.Empty(t, compute(t, snapshot(given("a=1"), ready("a-0", member("a"), gen.DeletionCost("100")))).Steps)
}

func TestEachRevisionHasTheWholeRoom(t *testing.T) {
	s := snapshot(given("a=2 b"), slices.Concat(many("a", 2, hash("old")), []*corev1.Pod{ready("n-0", member("a"), hash("new"))})...)
	s.Target.Versioned, s.Target.Latest = replicaSets(), "new"
	p := compute(t, s)
	assert.Equal(t, "a 2/0 b 0/-1", count(p.Status.VersionedSubsetStatuses["old"]))
	assert.Equal(t, "a 1/1 b 0/-1", count(p.Status.VersionedSubsetStatuses["new"]))
	assert.Equal(t, "a 3/0 b 0/-1", count(p.Status.SubsetStatuses))
	assert.Equal(t, "a 3/2, b 0", p.Status.Distribution)
	assert.EqualValues(t, 1, p.Status.ObservedGeneration)
}

func TestPlacesOfPodsToCome(t *testing.T) {
	at := func(ago time.Duration) metav1.Time { return metav1.NewTime(gen.Epoch().Add(time.Minute - ago)) }
	for name, c := range map[string]struct {
		creating, deleting map[string]metav1.Time
		pods               []*corev1.Pod
		want               string
		again              time.Duration
		event              string
	}{
		"kept while it is young": {creating: map[string]metav1.Time{"x": at(3 * time.Second)}, want: "a 0/4 +1", again: 27 * time.Second},
		"dropped when the pod does not appear": {
			creating: map[string]metav1.Time{"x": at(31 * time.Second)}, want: "a 0/5", event: EventCreatePodFailed,
		},
		"of a pod that is there, by name": {
			creating: map[string]metav1.Time{"a-0": at(time.Second)}, pods: many("a", 1), want: "a 1/4",
		},
		"of a pod that is there, by uid": {
			creating: map[string]metav1.Time{"u": at(time.Second)}, want: "a 1/4",
			pods: []*corev1.Pod{ready("x", gen.Annotation(v1beta1.MatchedAnnotation, `{"name":"web","subset":"a","uid":"u"}`))},
		},
		"of a pod that has finished": {
			creating: map[string]metav1.Time{"x": at(time.Second)}, want: "a 0/5",
			pods: []*corev1.Pod{ready("x", member("a"), gen.Phase(corev1.PodFailed))},
		},
		"not of a pod of the name that goes": {
			creating: map[string]metav1.Time{"x": at(time.Second)}, want: "a 0/4 +1", again: 29 * time.Second,
			pods: []*corev1.Pod{ready("x", member("a"), gen.Terminating())},
		},
		"and its successor cancel out": {
			creating: map[string]metav1.Time{"a-0": at(time.Second)}, deleting: map[string]metav1.Time{"a-0": at(2 * time.Second)},
			pods: many("a", 1), want: "a 1/4 +1 -1", again: 13 * time.Second,
		},
		"a deletion that was admitted": {
			deleting: map[string]metav1.Time{"a-1": at(time.Second)}, pods: many("a", 5), want: "a 5/1 -1", again: 14 * time.Second,
		},
		"a deletion that has begun": {
			deleting: map[string]metav1.Time{"x": at(time.Second)}, want: "a 0/5", pods: []*corev1.Pod{ready("x", member("a"), gen.Terminating())},
		},
		"a deletion that was refused": {
			deleting: map[string]metav1.Time{"a-1": at(16 * time.Second)}, pods: many("a", 5), want: "a 5/0", event: EventDeletePodFailed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := snapshot(given("a=5"), c.pods...)
			s.Spread.Status.VersionedSubsetStatuses = map[string][]v1beta1.SubsetStatus{
				v1beta1.VersionIgnored: {{Name: "a", CreatingPods: c.creating, DeletingPods: c.deleting}},
			}
			p := compute(t, s)
			assert.Equal(t, c.want, count(p.Status.VersionedSubsetStatuses[v1beta1.VersionIgnored]))
			assert.Equal(t, c.again, p.RequeueAfter)
			var reasons []string
			for _, n := range p.Notices {
				reasons = append(reasons, n.Reason)
			}
			assert.Equal(t, c.event, strings.Join(reasons, ","))
		})
	}
}

func TestStatusFollowsTheList(t *testing.T) {
	s := snapshot(given("b=1 a=2"), many("a", 1)...)
	s.Spread.Status.SubsetStatuses = []v1beta1.SubsetStatus{{Name: "a"}, {Name: "gone"}}
	p := compute(t, s)
	assert.Equal(t, "b 0/1 a 1/1", count(p.Status.SubsetStatuses))
	assert.Equal(t, map[string][]v1beta1.SubsetStatus{v1beta1.VersionIgnored: p.Status.SubsetStatuses}, p.Status.VersionedSubsetStatuses)
}

// adopted is which pods come into which subset.
func adopted(p Plan) string {
	var parts []string
	for _, step := range p.Steps {
		for _, a := range step.Actions {
			if _, subset, ok := strings.Cut(a.Message, "subset "); ok {
				parts = append(parts, a.Object.GetName()+" "+subset)
			}
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, "; ")
}

func TestPodsThatWereThereBefore(t *testing.T) {
	on := func(zone string) gen.PodOption { return gen.OnNode("node-" + zone) }
	p := compute(t, snapshot(given("a=2 b"), ready("1", on("a")), ready("2", on("a")), ready("3", on("a")), ready("4", on("b")), ready("5", on("c"))))
	assert.Equal(t, "1 a, cost -100; 2 a, cost 200; 3 a, cost 200; 4 b, cost 100", adopted(p))
	assert.Contains(t, p.String(), "pod 5 (Spread): cost -300", "there is no subset for its node")
	assert.Equal(t, "a 3/0 b 1/-1", count(p.Status.SubsetStatuses))

	unknown := snapshot(given("a"), ready("1", gen.OnNode("node-x")), gen.Pod("2", gen.Created(gen.Epoch())))
	assert.Empty(t, compute(t, unknown).Steps, "a pod without a node, and one whose node is not known")
}

func TestWhatAPodNeedsOnItsNodeDecides(t *testing.T) {
	s := snapshot(given("a b"), ready("1", gen.OnNode("node-b")))
	s.Spread.Spec.Subsets[0].RequiredNodeSelector, s.Spread.Spec.Subsets[1].RequiredNodeSelector = nil, nil
	assert.Equal(t, "1 a, cost 200", adopted(compute(t, s)), "the first of equal ones")

	prefer := func(i int, weight int32) {
		s.Spread.Spec.Subsets[i].PreferredNodeSelector = []corev1.PreferredSchedulingTerm{{Weight: weight, Preference: *in("b")}}
	}
	prefer(0, 10)
	prefer(1, 20)
	assert.Equal(t, "1 b, cost 100", adopted(compute(t, s)))

	s.Nodes["node-b"].Spec.Taints = []corev1.Taint{{Key: "zone", Effect: corev1.TaintEffectNoSchedule}}
	assert.Empty(t, adopted(compute(t, s)))
	s.Spread.Spec.Subsets[0].Tolerations = []corev1.Toleration{{Key: "zone", Operator: corev1.TolerationOpExists}}
	assert.Equal(t, "1 a, cost 200", adopted(compute(t, s)))
}

// Subsets that only patches tell apart: a pod comes into the one whose patch it has.
func TestPodsComeIntoTheSubsetWhosePatchTheyHave(t *testing.T) {
	s := snapshot(given("a b"), ready("1", gen.OnNode("node-x")), ready("2", gen.OnNode("node-x"), gen.Created(gen.Epoch().Add(time.Second))))
	s.Nodes["node-x"] = &corev1.Node{}
	for i := range s.Spread.Spec.Subsets {
		subset := &s.Spread.Spec.Subsets[i]
		subset.RequiredNodeSelector = nil
		subset.Patch.Raw = []byte(`{"metadata":{"annotations":{"x":"y"}},"spec":{"containers":[{"name":"main","image":"app:` + subset.Name + `"}]}}`)
	}
	assert.Equal(t, s.Pods[:1], NeedsWhole(s.Spread, s.Pods, s.Nodes))
	assert.Equal(t, "1 a, cost 200; 2 a, cost 200", adopted(compute(t, s)))
	whole := s.Pods[0].DeepCopy()
	whole.Spec.Containers[0].Image = "app:b"
	s.Whole = map[types.UID]*corev1.Pod{whole.UID: whole}
	assert.Equal(t, "1 b, cost 100; 2 a, cost 200", adopted(compute(t, s)))

	s.Spread.Spec.Subsets = s.Spread.Spec.Subsets[:1]
	assert.Empty(t, NeedsWhole(s.Spread, s.Pods, s.Nodes), "there is nothing to choose")
}

func TestAdoptedPodsGetTheMetadataOfThePatch(t *testing.T) {
	s := snapshot(given("a"), ready("1", gen.OnNode("node-a")))
	s.Spread.Spec.Subsets[0].Patch.Raw = []byte(`{"metadata":{"labels":{"subset":"a"},"annotations":{"x":"y"}},"spec":{"priority":3}}`)
	written := func() map[string]any {
		return compute(t, s).Steps[0].Actions[0].Patches[0].Body["metadata"].(map[string]any)
	}
	assert.Equal(t, map[string]any{"subset": "a"}, written()["labels"])
	assert.Equal(t, map[string]any{
		"x": "y", v1beta1.MatchedAnnotation: `{"name":"web","subset":"a"}`, contract.PodDeletionCostAnnotation: "100",
	}, written()["annotations"])

	s.Spread.Annotations = map[string]string{v1beta1.IgnorePatchMetadataAnnotation: "True"}
	assert.NotContains(t, written(), "labels")
}

// null takes a label away, as it does from a new pod, and gives nothing an empty value.
func TestAdoptedPodsLoseWhatThePatchTakesAway(t *testing.T) {
	s := snapshot(given("a"), ready("1", gen.OnNode("node-a"), gen.Label("old", "x")))
	s.Spread.Spec.Subsets[0].Patch.Raw = []byte(`{"metadata":{"labels":{"old":null,"none":null},"annotations":{"none":null}}}`)
	written := compute(t, s).Steps[0].Actions[0].Patches[0].Body["metadata"].(map[string]any)
	assert.Equal(t, map[string]any{"old": nil}, written["labels"])
	assert.Equal(t, map[string]any{
		v1beta1.MatchedAnnotation: `{"name":"web","subset":"a"}`, contract.PodDeletionCostAnnotation: "100",
	}, written["annotations"])
}

// Running pods stay those of their workload.
func TestMarksLeaveTheLabelsOfTheSelector(t *testing.T) {
	pod := ready("1", gen.Created(gen.Epoch()), gen.OnNode("node-a"), gen.Label("app", "web"))
	s := snapshot(given("a=2"), pod)
	s.Spread.Spec.Subsets[0].Patch.Raw = []byte(`{"metadata":{"labels":{"app":"web-a","zone":"a","pod-template-hash":"x"}}}`)
	s.Target.Selector = []string{"app"}
	written := compute(t, s).Steps[0].Actions[0].Patches[0].Body["metadata"].(map[string]any)
	assert.Equal(t, map[string]any{"zone": "a"}, written["labels"])
}

// Admission would not know of a place that is taken in one pass: the place is noted first.
func TestLaterPodsComeIntoSubsetsWithRoom(t *testing.T) {
	later := func(name, zone string) *corev1.Pod {
		return ready(name, gen.Created(gen.Epoch().Add(time.Second)), gen.OnNode("node-"+zone))
	}
	s := snapshot(given("a=2 b=9 c"), ready("a-0", member("a"), gen.DeletionCost("300")), later("1", "a"), later("2", "a"), later("3", "c"))
	p := compute(t, s)
	assert.Equal(t, "3 c, cost 100", adopted(p), "places without limit are taken at once")
	got := p.Status.VersionedSubsetStatuses[v1beta1.VersionIgnored]
	assert.Equal(t, "a 1/0 +1 b 0/9 c 1/-1", count(got))
	assert.Contains(t, got[0].CreatingPods, "1")

	s.Spread.Status = *p.Status
	p = compute(t, s)
	assert.Equal(t, "1 a, cost 300; 3 c, cost 100", adopted(p))
	assert.Equal(t, "a 1/0 +1 b 0/9 c 1/-1", count(p.Status.VersionedSubsetStatuses[v1beta1.VersionIgnored]), "it is not marked yet")
	assert.NotContains(t, p.String(), "pod 2 ", "a pod without room has no cost")
}

// waiting cannot be scheduled since the epoch.
func waiting(name string, options ...gen.PodOption) *corev1.Pod {
	return gen.Pod(name, append([]gen.PodOption{gen.Created(gen.Epoch()), gen.Unschedulable(corev1.PodReasonUnschedulable, gen.Epoch())}, options...)...)
}

func TestSubsetsAreClosedBeforePodsAreDeleted(t *testing.T) {
	s := snapshot(adaptive(given("a=2 b"), 30), waiting("a-0", member("a"), gen.DeletionCost("200")), waiting("b-0", member("b"), gen.DeletionCost("100")))
	p := compute(t, s)
	assert.Empty(t, p.Steps)
	assert.Equal(t, "a 1/1 ! b 1/-1", count(p.Status.SubsetStatuses))
	assert.Equal(t, "a 1/1 ! b 1/-1", count(p.Status.VersionedSubsetStatuses[v1beta1.VersionIgnored]))
	assert.Contains(t, p.Status.SubsetStatuses[0].Conditions[0].Message, "pod a-0 is unschedulable")
	assert.Equal(t, v1beta1.ReasonSufficient, p.Status.SubsetStatuses[1].Conditions[0].Reason, "there is none after the last one")

	s.Spread.Status = *p.Status
	s.Now = s.Now.Add(time.Second)
	p = compute(t, s)
	assert.Equal(t, "reschedule:\n  Delete pod a-0 (Reschedule): unschedulable in subset a\n", p.String())
	assert.Equal(t, s.Spread.Status, *p.Status, "nothing else changes")

	s.Pods = s.Pods[1:] // the pod has gone
	p = compute(t, s)
	assert.Equal(t, "a 0/2 ! b 1/-1", count(p.Status.SubsetStatuses))
	assert.Equal(t, 5*time.Minute-time.Second, p.RequeueAfter)

	s.Now = s.Now.Add(5 * time.Minute)
	p = compute(t, s)
	assert.Equal(t, "a 0/2 b 1/-1", count(p.Status.SubsetStatuses))
	require.Len(t, p.Notices, 1)
	assert.Equal(t, EventRecovered, p.Notices[0].Reason)
}

// A scheduler that is late takes no time away from the pod.
func TestTheTimeOfTheConditionCounts(t *testing.T) {
	since := gen.Epoch().Add(50 * time.Second)
	p := compute(t, snapshot(adaptive(given("a=2 b"), 30), waiting("a-0", member("a"), gen.Unschedulable(corev1.PodReasonUnschedulable, since))))
	assert.Equal(t, "a 1/1 b 0/-1", count(p.Status.SubsetStatuses))
	assert.Equal(t, 20*time.Second, p.RequeueAfter, "the pod is one minute old")
}

func TestWhoWaitsIsLeftAlone(t *testing.T) {
	for name, s := range map[string]Snapshot{
		"strategy Fixed":      snapshot(given("a=2 b"), waiting("a-0", member("a"))),
		"no patience":         snapshot(adaptive(given("a=2 b"), 0), waiting("a-0", member("a"))),
		"not long enough":     snapshot(adaptive(given("a=2 b"), 61), waiting("a-0", member("a"))),
		"scheduled":           snapshot(adaptive(given("a=2 b"), 5), ready("a-0", member("a"))),
		"terminating already": snapshot(adaptive(given("a=2 b"), 5), waiting("a-0", member("a"), gen.Terminating())),
		"in no subset":        snapshot(adaptive(given("a=2 b"), 5), waiting("a-0")),
	} {
		p := compute(t, s)
		assert.NotContains(t, count(p.Status.SubsetStatuses), "!", name)
		assert.NotContains(t, p.String(), "Delete", name)
		if name == "not long enough" {
			assert.Equal(t, time.Second, p.RequeueAfter)
		}
	}
	s := snapshot(given("a=2 b"), waiting("a-0", member("a")))
	s.Spread.Status.SubsetStatuses = []v1beta1.SubsetStatus{{Name: "a", Conditions: []metav1.Condition{{Type: v1beta1.SubsetSchedulable}}}}
	assert.Empty(t, compute(t, s).Status.SubsetStatuses[0].Conditions, "the condition goes with the strategy")
}

func TestNothingBreaksAPlan(t *testing.T) {
	for name, s := range map[string]Snapshot{
		"no subset":     snapshot(adaptive(given(""), 5), ready("1", gen.OnNode("node-a"))),
		"odd limit":     snapshot(given("a=x"), many("a", 1)...),
		"a foreign pod": snapshot(given("a"), ready("1", gen.Annotation(v1beta1.MatchedAnnotation, `{"name":"other","subset":"a"}`))),
	} {
		assert.NotNil(t, compute(t, s).Status, name)
	}
}

// The clock of a webhook may be wrong by any time: what counts is how long the controller has seen the place.
func TestAWrongClockFreesNoPlace(t *testing.T) {
	s := snapshot(given("a=2 b"))
	at := metav1.NewTime(s.Now.Add(-time.Minute))
	s.Spread.Status.VersionedSubsetStatuses = map[string][]v1beta1.SubsetStatus{v1beta1.VersionIgnored: {
		{Name: "a", CreatingPods: map[string]metav1.Time{"p": at}}, {Name: "b"},
	}}
	place := subsets.Entry{Version: v1beta1.VersionIgnored, Subset: "a", ID: "p", At: at.Unix()}
	for seen, want := range map[time.Duration]string{0: "a 0/1 +1 b 0/-1", 29 * time.Second: "a 0/1 +1 b 0/-1", 30 * time.Second: "a 0/2 b 0/-1"} {
		s.Seen = map[subsets.Entry]time.Time{place: s.Now.Add(-seen)}
		p := compute(t, s)
		assert.Equal(t, want, count(p.Status.VersionedSubsetStatuses[v1beta1.VersionIgnored]), seen)
		assert.Len(t, p.Notices, int(seen/(30*time.Second)))
	}
	s.Seen = map[subsets.Entry]time.Time{}
	assert.Equal(t, "a 0/1 +1 b 0/-1", count(compute(t, s).Status.VersionedSubsetStatuses[v1beta1.VersionIgnored]), "it has come since")
}
