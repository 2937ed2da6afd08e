package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/disruption"
)

const (
	del    = v1beta1.DeleteOperation
	upd    = v1beta1.UpdateOperation
	evict  = v1beta1.EvictOperation
	resize = v1beta1.ResizeOperation
)

func TestDecisions(t *testing.T) {
	web := named("web-1")
	limit := maxUnavailable("1")
	ignoring := func(b *v1beta1.PodUnavailableBudget) {
		b.Spec.IgnoredPodSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"canary": "yes"}}
	}
	old := func(b *v1beta1.PodUnavailableBudget) { b.Generation = 3 }
	full := func(b *v1beta1.PodUnavailableBudget) {
		b.Status.DisruptedPods = map[string]metav1.Time{}
		for _, pod := range pods("gone", disruption.MaxGrants) {
			b.Status.DisruptedPods[pod.Name] = metav1.NewTime(now)
		}
	}
	cases := []struct {
		name   string
		budget *v1beta1.PodUnavailableBudget
		pod    *corev1.Pod
		op     v1beta1.PubOperation
		want   string // free, granted, renewed or a part of the refusal
	}{
		{"there is room", budget(limit, numbersOf(3, 2)), web, del, "granted"},
		{"surplus pods", budget(limit, numbersOf(13, 9)), web, evict, "granted"},
		{"there is no room", budget(limit, numbersOf(2, 2)), web, del, "refuses DELETE of pod web-1: 2 available, 2 required of 10 (maxUnavailable 1); retry later, or exempt the pod with annotation pub.kruise.io/no-protect=true"},
		{"no room, and no workload", budget(limit, numbersOf(2, 2), func(b *v1beta1.PodUnavailableBudget) { b.Status.TotalReplicas = 0 }), web, del, "2 available, 2 required (maxUnavailable 1)"},
		{"below the floor", budget(limit, numbersOf(1, 2)), web, upd, "refuses UPDATE"},
		{"not ready", budget(limit, numbersOf(2, 2)), gen.Pod("web-1", gen.NotReady(gen.Epoch())), del, "free"},
		{"terminating", budget(limit, numbersOf(2, 2)), gen.Pod("web-1", gen.Ready(gen.Epoch()), gen.Terminating()), del, "free"},
		{"finished", budget(limit, numbersOf(2, 2)), gen.Pod("web-1", gen.Ready(gen.Epoch()), gen.Phase(corev1.PodSucceeded)), del, "free"},
		{"labelled as unavailable", budget(limit, numbersOf(2, 2)), gen.Pod("web-1", gen.Ready(gen.Epoch()), gen.Label(v1beta1.UnavailableLabelPrefix+"a", "")), upd, "free"},
		{"exempted by its owner", budget(limit, numbersOf(2, 2)), gen.Pod("web-1", gen.Ready(gen.Epoch()), gen.Annotation(v1beta1.NoProtectAnnotation, "T")), del, "free"},
		{"ignored", budget(limit, numbersOf(2, 2), ignoring), gen.Pod("web-1", gen.Ready(gen.Epoch()), gen.Label("canary", "yes")), evict, "free"},
		{"ignored by the annotation", budget(limit, numbersOf(2, 2), func(b *v1beta1.PodUnavailableBudget) {
			b.Annotations = map[string]string{v1beta1.IgnoredPodSelectorAnnotation: `{"matchLabels":{"canary":"yes"}}`}
		}), gen.Pod("web-1", gen.Ready(gen.Epoch()), gen.Label("canary", "yes")), evict, "free"},
		{"not ignored", budget(limit, numbersOf(2, 2), ignoring), web, evict, "refuses EVICT"},
		{"not protected", budget(limit, numbersOf(2, 2), operations(del)), web, upd, "free"},
		{"protected by the annotation", budget(limit, numbersOf(2, 2), func(b *v1beta1.PodUnavailableBudget) {
			b.Annotations = map[string]string{v1beta1.ProtectOperationsAnnotation: "DELETE, EVICT"}
		}), web, evict, "refuses EVICT"},
		{"nothing is desired", budget(limit, numbersOf(0, 0)), web, del, "confirmed"},
		{"the spec is new", budget(limit, numbersOf(5, 0), old), web, del, "its status is being updated"},
		{"a grant of another process", budget(limit, numbersOf(2, 2), granted(web, del, time.Second)), web, evict, "renewed"},
		{"a grant some time ago", budget(limit, numbersOf(2, 2), granted(web, del, 5*time.Second)), web, del, "renewed"},
		{"a grant from a clock that is ahead", budget(limit, numbersOf(2, 2), granted(web, del, -time.Minute)), web, del, "renewed"},
		{"a change that becomes a deletion", budget(limit, numbersOf(2, 2), granted(web, upd, time.Second)), web, del, "renewed"},
		{"a grant that was renewed for long enough", budget(limit, numbersOf(3, 2), granted(web, del, time.Second), func(b *v1beta1.PodUnavailableBudget) {
			b.Status.Grants["web-1"] = v1beta1.PodGrant{Closed: true}
		}), web, evict, "have not happened; retry when the last one has expired"},
		{"a grant of another pod of the name", budget(limit, numbersOf(3, 2), granted(uid(named("web-1"), "other"), del, 0)), web, del, "another pod of this name"},
		{"exempted, with a grant of another pod of the name", budget(limit, numbersOf(3, 2), operations(upd), granted(uid(named("web-1"), "other"), del, 0)), web, del, "free"},
		{"no room, and a grant of an earlier pod of the name", budget(limit, numbersOf(2, 2), granted(uid(named("web-1"), "earlier"), del, 0)), web, del, "blocked by: web-1 (deletion allowed 0s ago; counted for up to 37s more)"},
		{"no room, and a change", budget(limit, numbersOf(2, 2), granted(named("web-2"), upd, 3*time.Second)), web, del, "blocked by: web-2 (update allowed 3s ago; counted for at least 7s more)"},
		{"no room, and a change that its node has not seen", budget(limit, numbersOf(2, 2), granted(named("web-2"), upd, time.Minute)), web, del, "blocked by: web-2 (update allowed 1m0s ago)"},
		{"a grant as OpenKruise has written it", budget(limit, numbersOf(2, 2), func(b *v1beta1.PodUnavailableBudget) {
			b.Status.DisruptedPods = map[string]metav1.Time{"web-1": metav1.NewTime(now)}
		}), web, del, "renewed"},
		{"too many grants", budget(limit, numbersOf(3000, 2), full), web, del, "2000 allowed disruptions are still pending; retry"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			before := tc.budget.DeepCopy()
			v := disruption.Decide(tc.budget, disruption.Request{Pod: tc.pod, Operation: tc.op, ResizeApart: true, Now: now})
			assert.Equal(t, before, tc.budget)
			switch tc.want {
			case "free":
				assert.Equal(t, disruption.Verdict{}, v)
			case "confirmed":
				assert.Equal(t, disruption.Verdict{Confirm: true}, v)
			case "granted", "renewed":
				require.NotNil(t, v.Next, v.Refused)
				charge := int32(1)
				if tc.want == "renewed" {
					charge = 0
				}
				assert.Equal(t, tc.budget.Status.CurrentAvailable-charge, v.Next.CurrentAvailable)
				assert.True(t, disruption.HasEntry(v.Next, tc.pod))
			default:
				assert.Nil(t, v.Next)
				assert.Contains(t, v.Refused, tc.want)
			}
		})
	}
}

// What did not pass the budget is no grant: after it, whoever asks needs room.
func TestWhatIsFreeOpensTheDoorForNothingElse(t *testing.T) {
	exempt := func(pod *corev1.Pod) { gen.Annotation(v1beta1.NoProtectAnnotation, "true")(pod) }
	for name, tc := range map[string]struct {
		protected []v1beta1.PubOperation
		first     v1beta1.PubOperation
		pod       gen.PodOption
		then      v1beta1.PubOperation
	}{
		"a resize, then an eviction":                       {nil, resize, func(*corev1.Pod) {}, evict},
		"evictions that only others limit, then deletions": {[]v1beta1.PubOperation{del, upd}, evict, func(*corev1.Pod) {}, del},
		"an exemption that is taken back":                  {nil, del, exempt, del},
	} {
		t.Run(name, func(t *testing.T) {
			b := budget(maxUnavailable("1"), operations(tc.protected...), numbersOf(5, 4))
			pods := ready(5)
			for _, pod := range pods {
				first := pod.DeepCopy()
				tc.pod(first)
				require.Equal(t, disruption.Verdict{}, disruption.Decide(b, disruption.Request{Pod: first, Operation: tc.first, ResizeApart: true, Now: now}))
			}
			granted := 0
			for _, pod := range pods {
				if v := disruption.Decide(b, disruption.Request{Pod: pod, Operation: tc.then, ResizeApart: true, Now: now}); v.Refused == "" {
					require.NotNil(t, v.Next)
					b.Status = *v.Next
					granted++
				}
			}
			assert.Equal(t, 1, granted)
		})
	}
}

// Entries that OpenKruise or an earlier release has written work while the floor holds, as it does when they have passed
// the budget.
func TestEntriesOfOtherManagers(t *testing.T) {
	web := named("web-1")
	for name, tc := range map[string]struct {
		current int32
		uids    map[string]types.UID
		want    bool
	}{
		"of OpenKruise":                      {2, nil, true},
		"of an earlier release":              {2, map[string]types.UID{"web-1": web.UID}, true},
		"below the floor":                    {1, map[string]types.UID{"web-1": web.UID}, false},
		"of OpenKruise, and below the floor": {1, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := budget(maxUnavailable("1"), numbersOf(tc.current, 2))
			b.Status.UnavailablePods, b.Status.PodUIDs = map[string]metav1.Time{"web-1": metav1.NewTime(now)}, tc.uids
			v := disruption.Decide(b, disruption.Request{Pod: web, Operation: del, Now: now})
			assert.Equal(t, tc.want, v.Refused == "", v.Refused)
			if tc.want {
				require.NotNil(t, v.Next)
				assert.Equal(t, tc.current, v.Next.CurrentAvailable, "it is charged already")
				assert.Contains(t, v.Next.Grants, "web-1")
			}
		})
	}
}

// What this process itself has recorded a moment ago covers the next request; everything else may be old news.
func TestWhatThisProcessHasRecordedIsFree(t *testing.T) {
	web := named("web-1")
	for name, b := range map[string]*v1beta1.PodUnavailableBudget{
		"a grant": budget(maxUnavailable("1"), numbersOf(2, 2), granted(web, del, time.Second)),
	} {
		assert.Equal(t, disruption.Verdict{}, disruption.Decide(b, disruption.Request{Pod: web, Operation: del, Recorded: true, Now: now}), name)
	}
}

func TestGrantsAreRecordedWhereTheyBelong(t *testing.T) {
	for op, disrupts := range map[v1beta1.PubOperation]bool{del: true, evict: true, upd: false, resize: false} {
		v := disruption.Decide(budget(maxUnavailable("1"), operations(op), numbersOf(10, 9)), disruption.Request{Pod: named("web-1"), Operation: op, Now: now})
		require.NotNil(t, v.Next)
		grants := disruption.Grants(v.Next)
		require.Len(t, grants, 1)
		assert.Equal(t, disrupts, grants[0].Disrupts, op)
		assert.Equal(t, named("web-1").UID, grants[0].UID)
		assert.EqualValues(t, 0, v.Next.UnavailableAllowed)
	}
}

func TestProtectedOperations(t *testing.T) {
	all := []v1beta1.PubOperation{del, evict, upd, resize}
	cases := []struct {
		set  []v1beta1.PubOperation
		off  string // which of all are protected while a resize is an update
		on   string
		name string
	}{
		{nil, "xxxx", "xxx-", "default"},
		{[]v1beta1.PubOperation{upd}, "--xx", "--x-", "UPDATE"},
		{[]v1beta1.PubOperation{resize}, "---x", "---x", "RESIZE"},
		{[]v1beta1.PubOperation{del}, "x---", "x---", "DELETE"},
		{all, "xxxx", "xxxx", "all"},
	}
	for _, tc := range cases {
		for i, op := range all {
			b := budget(operations(tc.set...))
			assert.Equal(t, tc.off[i] == 'x', disruption.Protects(b, op, false), "%s: %s", tc.name, op)
			assert.Equal(t, tc.on[i] == 'x', disruption.Protects(b, op, true), "%s: %s, resize apart", tc.name, op)
		}
	}
}

func requests(name corev1.ResourceName, quantity string) *corev1.ResourceRequirements {
	return &corev1.ResourceRequirements{Requests: corev1.ResourceList{name: resource.MustParse(quantity)}}
}

func TestUpdatesAreClassified(t *testing.T) {
	base := func(changes ...gen.PodOption) *corev1.Pod {
		pod := gen.Pod("web", gen.Ready(gen.Epoch()))
		pod.Spec.InitContainers = []corev1.Container{
			{Name: "setup", Image: "setup:1"},
			{Name: "proxy", Image: "proxy:1", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)},
		}
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}
		pod.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: "memory", RestartPolicy: corev1.RestartContainer}}
		for _, c := range changes {
			c(pod)
		}
		return pod
	}
	cases := []struct {
		name          string
		before, after *corev1.Pod
		want          v1beta1.PubOperation
	}{
		{"nothing", base(), base(), ""},
		{"labels", base(), base(gen.Label("a", "b")), ""},
		{"an image", base(), base(func(p *corev1.Pod) { p.Spec.Containers[0].Image = "app:2" }), upd},
		{"a sidecar's image", base(), base(func(p *corev1.Pod) { p.Spec.InitContainers[1].Image = "proxy:2" }), upd},
		{"a finished container's image", base(), base(func(p *corev1.Pod) { p.Spec.InitContainers[0].Image = "setup:2" }), ""},
		{"tolerations", base(), base(func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Key: "a"}} }), ""},
		{"a deadline", base(), base(func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(5)) }), upd},
		{"the first label of unavailability", base(), base(gen.Label(v1beta1.UnavailableLabelPrefix+"a", "")), upd},
		{"the second one", base(gen.Label(v1beta1.UnavailableLabelPrefix+"a", "")), base(gen.Label(v1beta1.UnavailableLabelPrefix+"a", ""), gen.Label(v1beta1.UnavailableLabelPrefix+"b", "")), ""},
		{"its end", base(gen.Label(v1beta1.UnavailableLabelPrefix+"a", "")), base(), ""},
		{"more cpu", base(), base(func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("2") }), resize},
		{"more memory, with a restart", base(), base(func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests["memory"] = resource.MustParse("2Gi") }), upd},
		{"more cpu for the pod as a whole", base(), base(func(p *corev1.Pod) { p.Spec.Resources = requests("cpu", "4") }), resize},
		{"more memory for it, with a restart", base(), base(func(p *corev1.Pod) { p.Spec.Resources = requests("memory", "4Gi") }), upd},
		{"what it has had", base(func(p *corev1.Pod) { p.Spec.Resources = requests("cpu", "4") }), base(func(p *corev1.Pod) { p.Spec.Resources = requests("cpu", "4000m") }), ""},
		{"the same quantity in other words", base(), base(func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("1000m") }), ""},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) { assert.Equal(t, tc.want, disruption.OfUpdate(tc.before, tc.after)) })
	}
}

func TestThePodLeavesServiceOnlyWhenAsked(t *testing.T) {
	with := func(status corev1.ConditionStatus, options ...gen.PodOption) *corev1.Pod {
		return gen.Pod("web", append(options, gen.Condition(contract.KruisePodReady, status, gen.Epoch()))...)
	}
	gate := gen.ReadinessGate(contract.KruisePodReady)
	assert.Equal(t, upd, disruption.OfStatus(with("True", gate), with("False", gate)))
	assert.Empty(t, disruption.OfStatus(with("False", gate), with("True", gate)))
	assert.Empty(t, disruption.OfStatus(with("False", gate), with("False", gate)))
	assert.Empty(t, disruption.OfStatus(with("True"), with("False")))
}
