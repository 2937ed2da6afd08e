package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/disruption"
)

func TestGrantsExpire(t *testing.T) {
	newer := func(pod *corev1.Pod) *corev1.Pod {
		pod.ResourceVersion = "2"
		return pod
	}
	behind := func(pod *corev1.Pod) *corev1.Pod {
		pod.Generation, pod.Status.ObservedGeneration = 3, 2
		return newer(pod)
	}
	cases := []struct {
		name    string
		op      v1beta1.PubOperation
		seen    time.Duration
		pod     *corev1.Pod // as the cache has it
		look    bool
		looked  *corev1.Pod
		kept    bool
		undone  bool
		current int32
	}{
		{"a deletion under way", del, time.Second, named("web-1"), false, nil, true, false, 1},
		{"a deletion that is seen", del, time.Second, gen.Pod("web-1", gen.Ready(gen.Epoch()), gen.Terminating()), false, nil, false, false, 1},
		{"a pod that is gone", del, time.Second, nil, true, nil, false, false, 1},
		{"a pod that the cache does not show yet", upd, time.Second, nil, true, named("web-1"), true, false, 0},
		{"one that leaves already", del, time.Second, nil, true, gen.Pod("web-1", gen.Terminating()), true, false, 0},
		{"a deletion that other webhooks hold up", del, 36 * time.Second, named("web-1"), false, nil, true, false, 1},
		{"a deletion that does not happen", del, disruption.Life, named("web-1"), true, named("web-1"), false, true, 2},
		{"a deletion that the cache has not seen", del, disruption.Life, named("web-1"), true, gen.Pod("web-1", gen.Terminating()), false, false, 1},
		{"a change under way", upd, 9 * time.Second, newer(named("web-1")), false, nil, true, false, 1},
		{"a change that is carried out", upd, 10 * time.Second, newer(named("web-1")), true, newer(named("web-1")), false, false, 2},
		{"a change that other webhooks hold up", upd, 36 * time.Second, named("web-1"), false, nil, true, false, 1},
		{"a change that does not happen", upd, disruption.Life, named("web-1"), true, named("web-1"), false, false, 2},
		{"a change that the cache has not seen", upd, disruption.Life, named("web-1"), true, behind(named("web-1")), true, false, 1},
		{"a change that the node has not seen", upd, time.Hour, behind(named("web-1")), false, nil, true, false, 1},
		{"a new pod of the name", del, time.Second, uid(named("web-1"), "new"), true, uid(named("web-1"), "new"), false, false, 2},
		{"an old pod of the name in the cache", upd, time.Second, uid(named("web-1"), "old"), true, named("web-1"), true, false, 1},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			// The time in the entry says nothing: it is of another machine's clock.
			web := named("web-1")
			web.ResourceVersion = "1"
			b := budget(maxUnavailable("1"), granted(web, tc.op, time.Hour))
			s := Snapshot{Budget: b, Pods: []*corev1.Pod{named("web-2")}, Workloads: workload(2), Sights: seen(b, tc.seen), Now: now, Replacements: asked(b, web)}
			cached := map[string]*corev1.Pod{}
			if tc.pod != nil {
				s.Pods = append(s.Pods, tc.pod)
				cached[tc.pod.Name] = tc.pod
			}
			look := s.LookAt(cached)
			assert.Equal(t, tc.look, len(look) > 0)
			if tc.looked != nil && tc.look && tc.pod != tc.looked {
				tc.looked.ResourceVersion = "2"
			}
			if tc.look {
				s.Looks = Looks{"web-1": NewLook(tc.looked, named("web-1").UID, tc.pod)}
			}
			p := compute(t, s)
			assert.Equal(t, tc.kept, len(disruption.Grants(&p.Status)) > 0)
			assert.Equal(t, tc.kept, len(p.Status.PodUIDs) > 0)
			assert.Equal(t, tc.kept, len(p.Status.Grants) > 0)
			assert.Equal(t, tc.undone, len(p.Undone) > 0)
			assert.Equal(t, tc.current, p.Status.CurrentAvailable)
			assert.Equal(t, tc.kept, p.RequeueAfter > 0)
		})
	}
}

func TestEntriesAreSeenOnce(t *testing.T) {
	b := budget(granted(named("web-1"), del, 0))
	first := disruption.Sights{}.Next(&b.Status, now)
	assert.Equal(t, first, first.Next(&b.Status, now.Add(time.Minute)))
	b.Status = *disruption.Record(&b.Status, named("web-1"), del, now) // within the same second
	again, g := first.Next(&b.Status, now.Add(time.Minute)), disruption.Grants(&b.Status)[0]
	assert.Equal(t, now, again[g.Entry()].First)
	assert.Equal(t, now.Add(time.Minute), again[g.Entry()].Last)
	assert.Empty(t, first.Next(&budget().Status, now))
}

// A drain that a PodDisruptionBudget refuses asks again every five seconds. The grant ends, and others get their turn.
func TestAGrantThatOthersRefuseEnds(t *testing.T) {
	for _, op := range []v1beta1.PubOperation{del, evict, upd} {
		b, sights, at := budget(maxUnavailable("1"), numbersOf(4, 3)), disruption.Sights{}, now
		pods, turn, undone := ready(4), time.Duration(0), 0
		for ; turn == 0 && at.Sub(now) < 10*time.Minute; at = at.Add(time.Second) {
			if int(at.Sub(now).Seconds())%5 == 0 {
				if v := disruption.Decide(b, disruption.Request{Pod: pods[0], Operation: op, Now: at}); v.Next != nil {
					b.Status = *v.Next
				}
			}
			sights = sights.Next(&b.Status, at)
			s := Snapshot{Budget: b, Pods: pods, Workloads: workload(4), Sights: sights, Now: at}
			known := map[string]*corev1.Pod{pods[0].Name: pods[0]}
			if len(s.LookAt(known)) > 0 {
				s.Looks = Looks{pods[0].Name: NewLook(pods[0], pods[0].UID, pods[0])}
			}
			p := Compute(s)
			b.Status, undone = p.Status, undone+len(p.Undone)
			if disruption.Decide(b, disruption.Request{Pod: pods[1], Operation: upd, Now: at}).Refused == "" && at.After(now) {
				turn = at.Sub(now)
			}
		}
		assert.NotZero(t, turn, op)
		assert.LessOrEqual(t, turn, 2*disruption.Life, op)
		assert.GreaterOrEqual(t, turn, disruption.Life, "%s: the last request it let go may still be under way", op)
		assert.Equal(t, op != upd, undone == 1, op)
	}
}

// OpenKruise writes no UIDs: its entries are those of whoever has the name.
func TestGrantsOfOpenKruiseCount(t *testing.T) {
	at := metav1.NewTime(now.Add(-time.Hour))
	b := budget(maxUnavailable("2"), numbersOf(9, 9))
	b.Status.DisruptedPods = map[string]metav1.Time{"web-000": at, "gone": at}
	b.Status.UnavailablePods = map[string]metav1.Time{"web-001": at}
	s := Snapshot{Budget: b, Pods: ready(5), Workloads: workload(5), Sights: seen(b, time.Second)}
	p := compute(t, s)
	assert.Equal(t, map[string]metav1.Time{"web-000": at}, p.Status.DisruptedPods, "it is old by another clock")
	assert.Equal(t, map[string]metav1.Time{"web-001": at}, p.Status.UnavailablePods)
	assert.Equal(t, [3]int32{3, 3, 0}, [3]int32{p.Status.CurrentAvailable, p.Status.DesiredAvailable, p.Status.UnavailableAllowed})
	b.Status = p.Status
	assert.Empty(t, disruption.Decide(b, disruption.Request{Pod: s.Pods[0], Operation: del, Now: now}).Refused)
	assert.NotEmpty(t, disruption.Decide(b, disruption.Request{Pod: s.Pods[2], Operation: del, Now: now}).Refused)
}

// A pod that the cache has not shown takes one place more, however many entries it has.
func TestAnUnseenPodTakesOnePlace(t *testing.T) {
	web := named("web-1")
	b := budget(maxUnavailable("1"), granted(web, upd, time.Second), granted(web, del, time.Second))
	p := compute(t, Snapshot{
		Budget: b, Pods: []*corev1.Pod{named("web-2"), named("web-3"), named("web-4")}, Workloads: workload(4), Sights: seen(b, 0), Now: now,
		Replacements: asked(b, web), Looks: Looks{"web-1": NewLook(web, web.UID, nil)},
	})
	assert.Len(t, disruption.Grants(&p.Status), 2)
	assert.Equal(t, int32(2), p.Status.CurrentAvailable)
}
