package plan

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/plan/refusals"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/subsets"
)

// later is a pod that was created after the spread without a subset, and runs on a node of zone a.
func later(name string) *corev1.Pod {
	pod := ready(name, gen.Created(gen.Epoch().Add(time.Second)), gen.OnNode("node-a"))
	pod.UID = types.UID(name)
	return pod
}

// adoption is a controller with a world that answers its marks.
type adoption struct {
	Snapshot
	answer  func(*action.Action) error
	perPass int // marks
	tracker refusals.Tracker
	writes  int // statuses
	entries int // places that they had
	tries   int
}

// pass runs one pass, and reports whether it has written anything.
func (a *adoption) pass() bool {
	key := memory.KeyOf(a.Spread)
	a.Refusals = a.tracker.For(key, refusals.Observation{Now: a.Now, Generation: 1})
	p := Compute(a.Snapshot)
	tries := 0
	write := func(act *action.Action) progress.Outcome {
		tries++
		err := a.answer(act)
		for i, pod := range a.Pods {
			if err == nil && pod.UID == act.Object.GetUID() {
				a.Pods[i] = withMark(pod, act)
			}
		}
		return progress.OutcomeOf(err)
	}
	progress.Run(p.Steps, progress.InTurn(write, func() time.Time { return a.Now }), progress.Options{
		Workload: key, Generation: 1, Refusals: &a.tracker, Spent: func(float64) bool { return a.perPass > 0 && tries >= a.perPass },
	})
	a.tries += tries
	wrote := canonical(*p.Status) != canonical(a.Spread.Status)
	if wrote {
		a.writes++
		for _, e := range p.Status.VersionedSubsetStatuses[v1beta1.VersionIgnored] {
			a.entries += len(e.CreatingPods)
		}
		a.Spread = a.Spread.DeepCopy()
		a.Spread.Status = *p.Status
	}
	return wrote || tries > 0
}

// withMark is the pod with what a mark sets.
func withMark(pod *corev1.Pod, a *action.Action) *corev1.Pod {
	pod = pod.DeepCopy()
	for key, value := range a.Patches[0].Body["metadata"].(map[string]any)["annotations"].(map[string]any) {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, key, value.(string))
	}
	return pod
}

// While the mark of a pod is refused its place is kept by the note, and nothing changes.
func TestAPodThatMayNotBeMarkedKeepsItsNote(t *testing.T) {
	a := adoption{Snapshot: snapshot(given("a=2 b=9 c"), later("1")), answer: func(*action.Action) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "1", errors.New("a policy says no"))
	}}
	for end := a.Now.Add(2 * time.Minute); a.Now.Before(end); a.Now = a.Now.Add(60 * time.Millisecond) {
		a.pass()
	}
	assert.Equal(t, 1, a.writes)
	assert.Equal(t, "a 0/1 +1 b 0/9 c 0/-1", count(a.Spread.Status.VersionedSubsetStatuses[v1beta1.VersionIgnored]))
	assert.LessOrEqual(t, a.tries, 9, "1, 2, 4, 8, 16, 30 ... seconds apart")

	a.answer = func(*action.Action) error { return nil }
	a.Now = a.Now.Add(time.Minute)
	a.pass()
	a.pass()
	assert.Equal(t, "a 1/1 b 0/9 c 0/-1", count(a.Spread.Status.VersionedSubsetStatuses[v1beta1.VersionIgnored]))
	assert.False(t, a.pass())
}

// A pod that ends before it is marked gives its place back.
func TestAPodThatEndsUnmarkedLeavesItsPlace(t *testing.T) {
	a := adoption{Snapshot: snapshot(given("a=2 b"), later("1")), answer: func(*action.Action) error { return nil }}
	a.pass()
	assert.Equal(t, "a 0/1 +1 b 0/-1", count(a.Spread.Status.VersionedSubsetStatuses[v1beta1.VersionIgnored]))
	a.Pods[0] = a.Pods[0].DeepCopy()
	a.Pods[0].Status.Phase = corev1.PodFailed
	a.pass()
	assert.Equal(t, "a 0/2 b 0/-1", count(a.Spread.Status.VersionedSubsetStatuses[v1beta1.VersionIgnored]))
}

// Many pods come in with as many passes as their marks need, and each place is written down once.
func TestManyPodsComeIn(t *testing.T) {
	const n, perPass = 1000, 100
	a := adoption{Snapshot: snapshot(given(fmt.Sprintf("a=%d b", n))), answer: func(*action.Action) error { return nil }, perPass: perPass}
	for i := range n {
		a.Pods = append(a.Pods, later(fmt.Sprint("p", i)))
	}
	passes := 0
	for a.pass() {
		passes++
		a.Now = a.Now.Add(300 * time.Millisecond)
	}
	assert.LessOrEqual(t, passes, n/perPass+2, "the places, the marks, and the last count")
	assert.Equal(t, fmt.Sprintf("a %d/0 b 0/-1", n), count(a.Spread.Status.VersionedSubsetStatuses[v1beta1.VersionIgnored]))
	assert.Equal(t, n, a.tries)
}

// What a pass costs grows with the pods and with the places under way, and not with their product.
func TestPlacesUnderWayAreReadOnce(t *testing.T) {
	const creating, pods = 500, 1000
	allocated := func(creating int) uint64 {
		s := snapshot(given("a=600 b=600 c=600"))
		var list []v1beta1.SubsetStatus
		for _, zone := range []string{"a", "b", "c"} {
			e := v1beta1.SubsetStatus{Name: zone, CreatingPods: map[string]metav1.Time{}}
			for i := range creating {
				e.CreatingPods[fmt.Sprint(zone, i)] = metav1.NewTime(s.Now)
			}
			list = append(list, e)
		}
		s.Spread.Status.VersionedSubsetStatuses = map[string][]v1beta1.SubsetStatus{v1beta1.VersionIgnored: list}
		for i := range pods {
			s.Pods = append(s.Pods, later(fmt.Sprint("p", i)))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		Compute(s)
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	assert.Less(t, allocated(creating), 2*allocated(0), "bytes that are allocated, with and without places under way")
}

// A StatefulSet of 5 with limits 2 and 2: web-4 is beyond all limits, and runs in the zone of b by chance. While web-3 is replaced, b
// has a place, which the next web-3 gets.
func TestAPodBeyondAllLimitsTakesNoPlaceOfAnOrdinal(t *testing.T) {
	s := given("a=2 b=2")
	s.Spec.TargetReference = &v1beta1.TargetReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web"}
	pod := func(i int, uid types.UID) *corev1.Pod { // as the webhook makes it
		made := ready(fmt.Sprint("web-", i), gen.Created(gen.Epoch().Add(time.Second)), gen.OnNode("node-b"))
		made.UID = uid
		if at := subsets.SubsetOfRank(s, subsets.Limits(s, nil), i); at != subsets.None {
			metav1.SetMetaDataAnnotation(&made.ObjectMeta, v1beta1.MatchedAnnotation, fmt.Sprintf(`{"name":"web","subset":%q}`, s.Spec.Subsets[at].Name))
		}
		return made
	}
	a := adoption{Snapshot: snapshot(s), answer: func(*action.Action) error { return nil }}
	a.Target = Target{Latest: v1beta1.VersionIgnored, Ordinals: &subsets.Ordinals{}}
	for i := range 5 {
		a.Pods = append(a.Pods, pod(i, types.UID(fmt.Sprint("old-", i))))
	}
	settle := func() {
		for n := 0; a.pass() && n < 10; n++ {
			a.Now = a.Now.Add(time.Second)
		}
	}
	settle()
	assert.Equal(t, "a 2/0 b 2/0", count(a.Spread.Status.SubsetStatuses))
	a.Pods[3] = a.Pods[3].DeepCopy()
	a.Pods[3].DeletionTimestamp = new(metav1.NewTime(a.Now))
	settle()
	a.Pods[3] = pod(3, "new-3")
	settle()
	assert.Equal(t, "a 2/0 b 2/0", count(a.Spread.Status.SubsetStatuses))
	assert.NotContains(t, a.Pods[4].Annotations, v1beta1.MatchedAnnotation)

	delete(a.Pods[3].Annotations, v1beta1.MatchedAnnotation) // the webhook was down when it came
	settle()
	assert.Equal(t, "a 2/0 b 2/0", count(a.Spread.Status.SubsetStatuses), "its place is its own")
	assert.Contains(t, a.Pods[3].Annotations[v1beta1.MatchedAnnotation], `"subset":"b"`)
}
