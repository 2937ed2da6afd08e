package plan

import (
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

	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/subsets"
)

func nobody(string) bool { return false }

func all(string) bool { return true }

// admit returns the subsets that pods of these names get one after the other, "-" for none.
func admit(b *subsets.Books, gone func(string) bool, names ...string) (got []string) {
	for _, name := range names {
		i := b.Ledger(v1beta1.VersionIgnored).Admit(name, epoch(), gone)
		if i == subsets.None {
			got = append(got, "-")
			continue
		}
		got = append(got, b.Spread().Spec.Subsets[i].Name)
	}
	return got
}

func TestPodsFillSubsetsInOrder(t *testing.T) {
	s := given("a=2 b=1 c")
	b := subsets.Open(s, subsets.Limits(s, nil))
	assert.Equal(t, []string{"a", "a", "b", "c", "c"}, admit(b, nobody, "1", "2", "3", "4", "5"))
	assert.Equal(t, []string{"a"}, admit(b, nobody, "1"), "it has a place already")
	assert.True(t, b.Close())
	assert.Equal(t, "a 0/0 +2 b 0/0 +1 c 0/-1", count(s.Status.VersionedSubsetStatuses[v1beta1.VersionIgnored]))

	assert.Equal(t, []string{"-"}, admit(subsets.Open(given("a=0"), []int32{0}), nobody, "1"), "there is no room")
}

// rolloutUnderAQuota is a rollout under a quota without room for the surge: an old pod ends every three seconds, and until then each
// creation is refused after it got its place. Pods come with a name of each try, or with none. It returns in which subsets the new
// pods are.
func rolloutUnderAQuota(replicas int, named, recycle bool) map[string]int {
	s, now := given("a=3 b"), gen.Epoch().Add(time.Hour)
	var pods []*corev1.Pod
	got := map[string]int{}
	nextEnd, free, pause := now.Add(5*time.Second), 0, 5*time.Millisecond
	gone := func(name string) bool {
		return !slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return pod.Name == name })
	}
	for tries := 1; len(pods) < replicas; tries++ {
		for ; !nextEnd.After(now); nextEnd = nextEnd.Add(3 * time.Second) {
			free++
		}
		b, uid := subsets.Open(s.DeepCopy(), subsets.Limits(s, nil)), fmt.Sprintf("00000000-0000-4000-8000-%012d", tries)
		if named {
			uid = fmt.Sprint("p", tries)
		}
		at := metav1.NewTime(now).Rfc3339Copy()
		if recycle {
			b.Ledger("new").Recycle(at, gone, func() (int32, bool) { return int32(replicas), true })
		}
		i := b.Ledger("new").Admit(uid, at, nobody)
		b.Close()
		s = b.Spread()
		if free > 0 {
			name := s.Spec.Subsets[i].Name
			pod := gen.Pod(fmt.Sprint("p", tries), hash("new"), gen.Created(now),
				gen.Annotation(v1beta1.MatchedAnnotation, fmt.Sprintf(`{"name":"web","subset":%q,"uid":%q}`, name, uid)))
			pods, free, pause = append(pods, pod), free-1, 5*time.Millisecond
			got[name]++
		}
		snap := snapshot(s, pods...) // the controller counts
		snap.Now, snap.Target.Versioned, snap.Target.Latest = now, replicaSets(), "new"
		s = s.DeepCopy()
		s.Status = *Compute(snap).Status
		now, pause = now.Add(pause), pause*2 // the workload's own back-off
		if pause > 4*time.Second {           // the end of a pod wakes it, too
			now, pause = nextEnd, 5*time.Millisecond
		}
	}
	return got
}

// A creation that was refused after it got its place is tried again, and that takes no further place.
func TestRefusedCreationsGiveTheirPlacesToTheNext(t *testing.T) {
	for _, named := range []bool{false, true} {
		assert.Equal(t, map[string]int{"a": 3, "b": 7}, rolloutUnderAQuota(10, named, true))
		assert.NotEqual(t, map[string]int{"a": 3, "b": 7}, rolloutUnderAQuota(10, named, false), "the story asks for it")
	}
}

func TestPlacesAreRecycled(t *testing.T) {
	const first, second, third = "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002", "00000000-0000-4000-8000-000000000003"
	at := func(seconds int) metav1.Time {
		return metav1.NewTime(gen.Epoch().Add(time.Duration(seconds) * time.Second))
	}
	for name, c := range map[string]struct {
		creating map[string]metav1.Time
		replicas int32
		deleting int
		wanted   int32 // -1 is not known
		left     []string
	}{
		"the oldest":                    {map[string]metav1.Time{first: at(3), second: at(2), third: at(4)}, 7, 0, 10, []string{first, third}},
		"more pods can come":            {map[string]metav1.Time{first: at(0), second: at(1)}, 7, 0, 10, []string{first, second}},
		"others are about to go":        {map[string]metav1.Time{first: at(0), second: at(1)}, 8, 1, 10, []string{first, second}},
		"it may be on its way":          {map[string]metav1.Time{first: at(8), second: at(9)}, 8, 0, 10, []string{first, second}},
		"named pods that are there":     {map[string]metav1.Time{"web-0": at(0), "web-1": at(1)}, 8, 0, 10, []string{"web-0", "web-1"}},
		"a named pod that never came":   {map[string]metav1.Time{"web-0": at(0), "lost": at(1)}, 8, 0, 10, []string{"web-0"}},
		"a named pod on its way":        {map[string]metav1.Time{"web-0": at(0), "lost": at(8)}, 8, 0, 10, []string{"lost", "web-0"}},
		"nobody knows how many come":    {map[string]metav1.Time{first: at(0)}, 10, 0, -1, []string{first}},
		"the workload has been scaled":  {map[string]metav1.Time{first: at(0), second: at(1)}, 10, 0, 4, []string{second}},
		"there is no place to be freed": {nil, 10, 0, 4, nil},
	} {
		s := given("a=20 b")
		e := v1beta1.SubsetStatus{Name: "a", Replicas: c.replicas, CreatingPods: c.creating, DeletingPods: map[string]metav1.Time{}}
		for i := range c.deleting {
			e.DeletingPods[strconv.Itoa(i)] = at(9)
		}
		s.Status.VersionedSubsetStatuses = map[string][]v1beta1.SubsetStatus{v1beta1.VersionIgnored: {e, {Name: "b"}}}
		b := subsets.Open(s, subsets.Limits(s, nil))
		l := b.Ledger(v1beta1.VersionIgnored)
		l.Recycle(at(10), func(name string) bool { return name == "lost" }, func() (int32, bool) { return c.wanted, c.wanted >= 0 })
		assert.Equal(t, c.left, slices.Sorted(maps.Keys(l.Entries[0].CreatingPods)), name)
		assert.Equal(t, len(c.left) < len(c.creating), b.Close(), name)
	}
}

// A spread, a revision or a subset that is new to the status may have pods already: one that was deleted and created again.
func TestPodsThatTheStatusDoesNotCountTakePlaces(t *testing.T) {
	s := given("a=2 b=2 c")
	s.Status.VersionedSubsetStatuses = map[string][]v1beta1.SubsetStatus{v1beta1.VersionIgnored: {{Name: "b", Replicas: 1}}}
	b := subsets.Open(s, subsets.Limits(s, nil))
	b.Counted = func(version string) map[string]int32 {
		assert.Equal(t, v1beta1.VersionIgnored, version)
		return map[string]int32{"a": 1, "b": 2}
	}
	assert.Equal(t, []string{"a", "b", "c"}, admit(b, nobody, "1", "2", "3"))
	assert.True(t, b.Close())
	assert.Equal(t, "a 1/0 +1 b 1/0 +1 c 0/-1", count(s.Status.VersionedSubsetStatuses[v1beta1.VersionIgnored]))
}

// Labels of pods, which anybody may write, do not make a status grow without end.
func TestVersionsAreBounded(t *testing.T) {
	s := given("a=2 b")
	for i := range 1000 {
		b := subsets.Open(s, subsets.Limits(s, nil))
		b.Ledger(fmt.Sprint("v", i)).Admit("p"+strconv.Itoa(i), epoch(), nobody)
		b.Close()
	}
	assert.Len(t, s.Status.VersionedSubsetStatuses, subsets.MostVersions+1)
	assert.Len(t, s.Status.VersionedSubsetStatuses[v1beta1.VersionIgnored][0].CreatingPods, 2)
	b := subsets.Open(s, subsets.Limits(s, nil))
	assert.Equal(t, 0, b.Ledger("v1").Admit("another", epoch(), nobody), "a version that is known stays one")

	pod := gen.Pod("p", hash("forged"))
	assert.Equal(t, "forged", subsets.VersionAmong(nil, pod, replicaSets()))
	assert.Equal(t, "forged", subsets.VersionAmong([]string{"forged"}, pod, replicaSets()))
	assert.Equal(t, v1beta1.VersionIgnored, subsets.VersionAmong([]string{"real"}, pod, replicaSets()))
}

func TestSubsetsWithoutLimitWriteNothing(t *testing.T) {
	s := given("a b=2")
	b := subsets.Open(s, subsets.Limits(s, nil))
	assert.Equal(t, []string{"a"}, admit(b, nobody, "1"))
	assert.False(t, b.Close())
}

func TestClosedSubsetsAreLeftOut(t *testing.T) {
	s := given("a=2 b")
	closed := []metav1.Condition{{Type: v1beta1.SubsetSchedulable, Status: metav1.ConditionFalse}}
	s.Status.VersionedSubsetStatuses = map[string][]v1beta1.SubsetStatus{v1beta1.VersionIgnored: {{Name: "a", Conditions: closed}}}
	assert.Equal(t, []string{"b"}, admit(subsets.Open(s, subsets.Limits(s, nil)), nobody, "1"))

	// So does a revision of which there are no pods yet.
	s.Status.VersionedSubsetStatuses = nil
	s.Status.SubsetStatuses = []v1beta1.SubsetStatus{{Name: "a", Conditions: closed}}
	assert.Equal(t, []string{"b"}, admit(subsets.Open(s, subsets.Limits(s, nil)), nobody, "1"))
}

// A deletion can be refused after it was noted: its place is given away only when the pod does not run any more.
func TestPlacesOfPodsThatAreBeingDeleted(t *testing.T) {
	full := func() *v1beta1.WorkloadSpread {
		s := given("a=2 b")
		s.Status.VersionedSubsetStatuses = map[string][]v1beta1.SubsetStatus{v1beta1.VersionIgnored: {{Name: "a", Replicas: 2}}}
		return s
	}
	s := full()
	b := subsets.Open(s, subsets.Limits(s, nil))
	b.Ledger(v1beta1.VersionIgnored).Leave("a", "old", "", epoch())
	assert.Equal(t, []string{"b"}, admit(b, nobody, "1"))
	assert.Equal(t, []string{"a", "b"}, admit(b, all, "2", "3"))
	assert.True(t, b.Close())
	assert.Equal(t, "a 2/0 +1 -1 b 0/-1", count(s.Status.VersionedSubsetStatuses[v1beta1.VersionIgnored]))

	for name, leave := range map[string]func(*subsets.Ledger){
		"noted twice": func(l *subsets.Ledger) { l.Leave("a", "x", "", epoch()); l.Leave("a", "x", "", epoch()) },
		"not counted yet": func(l *subsets.Ledger) {
			l.Entries[0].Replicas = 0
			l.Leave("a", "x", "", epoch())
			l.Leave("a", "y", "", epoch())
		},
		"of an unlimited subset":  func(l *subsets.Ledger) { l.Leave("b", "x", "", epoch()) },
		"of a subset that is not": func(l *subsets.Ledger) { l.Leave("z", "x", "", epoch()) },
	} {
		s := full()
		l := subsets.Open(s, subsets.Limits(s, nil)).Ledger(v1beta1.VersionIgnored)
		leave(l)
		assert.LessOrEqual(t, len(l.Entries[0].DeletingPods), 1, name)
		assert.LessOrEqual(t, len(l.Entries[0].DeletingPods), int(l.Entries[0].Replicas), name)
		assert.Empty(t, l.Entries[1].DeletingPods, name)
	}
}

func TestAPlaceThatIsNotCountedYetIsNotLeft(t *testing.T) {
	s := given("a=2")
	b := subsets.Open(s, subsets.Limits(s, nil))
	l := b.Ledger(v1beta1.VersionIgnored)
	l.Entries[0].Replicas = 1
	l.Admit("uid", epoch(), nobody)
	l.Leave("a", "pod", "uid", epoch())
	assert.Empty(t, l.Entries[0].DeletingPods)
}

// The formula is that of the specification, with limit 5.
func TestRoom(t *testing.T) {
	for _, c := range []struct{ active, deleting, creating, want int32 }{
		{0, 0, 0, 5}, {1, 0, 1, 3}, {1, 0, 0, 4}, {5, 1, 0, 1}, {5, 0, 0, 0}, {3, 0, 0, 2}, {7, 1, 0, 0}, {0, 0, 9, 0}, {0, 2, 0, 5},
	} {
		e := v1beta1.SubsetStatus{Replicas: c.active, CreatingPods: map[string]metav1.Time{}, DeletingPods: map[string]metav1.Time{}}
		for i := range c.deleting {
			e.DeletingPods[string('a'+i)] = epoch()
		}
		for i := range c.creating {
			e.CreatingPods[string('a'+i)] = epoch()
		}
		assert.Equal(t, c.want, subsets.Room(5, &e))
		assert.Equal(t, subsets.Unlimited, subsets.Room(subsets.Unlimited, &e))
	}
}

// The numbers that are left out are counted as one by one, whatever the ranges.
func TestRanksAreThoseOfACount(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0))
	for range 2000 {
		o := subsets.Ordinals{Start: r.IntN(5)}
		skip := map[int]bool{}
		for range r.IntN(5) {
			first := r.IntN(20) - 2
			reserved := subsets.Range{First: first, Last: first + r.IntN(8) - 1}
			o.Reserved = append(o.Reserved, reserved)
			for i := reserved.First; i <= reserved.Last; i++ {
				skip[i] = true
			}
		}
		rank := 0
		for n := o.Start; n < 25; n++ {
			got, ok := o.Rank("web-" + strconv.Itoa(n))
			require.Equal(t, !skip[n], ok, "%+v, %d", o, n)
			if ok {
				require.Equal(t, rank, got, "%+v, %d", o, n)
				rank++
			}
		}
	}
}

// Whoever may edit a StatefulSet cannot have the operator count for ever.
func TestLongRangesCostNothing(t *testing.T) {
	o := subsets.Ordinals{Reserved: []subsets.Range{{First: 1, Last: 1 << 40}, {First: 0, Last: 1 << 50}}}
	rank, ok := o.Rank("web-" + strconv.Itoa(1<<50+3))
	assert.True(t, ok)
	assert.Equal(t, 2, rank)
	_, ok = o.Rank("web-1000000000000")
	assert.False(t, ok)
}

func TestOrdinals(t *testing.T) {
	s := given("a=2 b=2 c")
	limits := subsets.Limits(s, nil)
	place := func(o subsets.Ordinals, pod string) string {
		rank, ok := o.Rank(pod)
		if !ok {
			return "?"
		}
		return s.Spec.Subsets[subsets.SubsetOfRank(s, limits, rank)].Name
	}
	for i, want := range []string{"a", "a", "b", "b", "c"} {
		assert.Equal(t, want, place(subsets.Ordinals{}, "web-"+string(rune('0'+i))))
	}
	assert.Equal(t, "?", place(subsets.Ordinals{}, "web"))
	assert.Equal(t, "?", place(subsets.Ordinals{}, "web-x"))

	from := subsets.Ordinals{Start: 10, Reserved: []subsets.Range{{First: 11, Last: 12}, {First: 12, Last: 12}}}
	assert.Equal(t, []string{"?", "a", "?", "?", "a", "b"},
		[]string{place(from, "web-9"), place(from, "web-10"), place(from, "web-11"), place(from, "web-12"), place(from, "web-13"), place(from, "web-14")})

	s.Status.SubsetStatuses = []v1beta1.SubsetStatus{{Name: "a", Conditions: []metav1.Condition{{Type: v1beta1.SubsetSchedulable, Status: metav1.ConditionFalse}}}}
	assert.Equal(t, "b", place(subsets.Ordinals{}, "web-1"))
	assert.Equal(t, "c", place(subsets.Ordinals{}, "web-2"))

	s.Status.SubsetStatuses = nil
	assert.Equal(t, subsets.None, subsets.SubsetOfRank(s, []int32{1, 1, 1}, 3))
}

// The kind that controls a pod decides, whatever the spread's target is.
func TestVersionsOfPods(t *testing.T) {
	pod := gen.Pod("p", hash("77"))
	assert.Equal(t, v1beta1.VersionIgnored, subsets.VersionOf(pod, nil))
	assert.Equal(t, "77", subsets.VersionOf(pod, replicaSets()))
	pod.OwnerReferences[0].Kind = "GameServer"
	assert.Equal(t, v1beta1.VersionIgnored, subsets.VersionOf(pod, replicaSets()))
	pod.OwnerReferences = nil
	assert.Equal(t, v1beta1.VersionIgnored, subsets.VersionOf(pod, replicaSets()))
	assert.Equal(t, "5d8f", subsets.RevisionOf(map[string]string{"controller-revision-hash": "web-5d8f"}))
	assert.Equal(t, v1beta1.VersionIgnored, subsets.RevisionOf(nil))
}

// A pod that is created again by its name stays in its subset, though an earlier one has room.
func TestASuccessorOfTheSameNameStays(t *testing.T) {
	s := given("a=1 b=1 c")
	s.Status.VersionedSubsetStatuses = map[string][]v1beta1.SubsetStatus{v1beta1.VersionIgnored: {
		{Name: "a"}, {Name: "b", Replicas: 1, DeletingPods: map[string]metav1.Time{"game-1": epoch()}},
	}}
	assert.Equal(t, []string{"a"}, admit(subsets.Open(s.DeepCopy(), subsets.Limits(s, nil)), nobody, "game-1"), "the deletion has not begun")
	b := subsets.Open(s, subsets.Limits(s, nil))
	assert.Equal(t, []string{"b", "a", "c"}, admit(b, all, "game-1", "game-2", "game-3"))
	require.True(t, b.Close())
	assert.Equal(t, "a 0/0 +1 b 1/0 +1 -1 c 0/-1", count(s.Status.VersionedSubsetStatuses[v1beta1.VersionIgnored]))
}

func TestAnnotationsOfPods(t *testing.T) {
	for text, want := range map[string]bool{
		`{"name":"web","subset":"a"}`: true, `{"Name":"web","Subset":"a"}`: true, `{"name":"web"}`: false, `{`: false, ``: false,
	} {
		m, ok := subsets.MatchOf(gen.Pod("p", gen.Annotation(v1beta1.MatchedAnnotation, text)))
		assert.Equal(t, want, ok, text)
		assert.Equal(t, want, m == v1beta1.Match{Name: "web", Subset: "a"}, text)
	}
	_, ok := subsets.MatchOf(gen.Pod("p"))
	assert.False(t, ok)
}
