package podupdate

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/inplace"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/workloads/revision"
)

var (
	now  = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	hook = &workload.LifecycleHook{LabelsHandler: map[string]string{"hook": "on"}}
)

// given is a workload with three revisions: another image, and other ports.
type given struct {
	Workload
	plan      action.Plan
	revisions []*appsv1.ControllerRevision
}

func givenWorkload(t *testing.T, policy Policy, lifecycle *workload.Lifecycle) *given {
	t.Helper()
	g := &given{}
	owner := &metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "web-uid"}
	for i := range 3 {
		template := gen.Template(gen.Label("app", "web"), gen.Image("main", fmt.Sprintf("app:%d", i+1)))
		if i == 2 {
			template.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80}}
		}
		r, err := revision.New(owner, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Web"}, &template, int64(i+1), 0)
		require.NoError(t, err)
		g.revisions = append(g.revisions, r)
	}
	g.Workload = Workload{
		Revisions: NewRevisions(g.revisions, inplace.Options{}), Policy: policy, Lifecycle: lifecycle, Now: now, Plan: &g.plan,
		Labels: func(name string) map[string]string { return map[string]string{contract.RevisionLabel: name} },
	}
	return g
}

// pod is an available pod of the first revision.
func (g *given) pod(t *testing.T, options ...gen.PodOption) podstate.State {
	t.Helper()
	template, err := revision.Template(g.revisions[0])
	require.NoError(t, err)
	all := append([]gen.PodOption{
		gen.FromTemplate(*template), gen.Revision(g.revisions[0].Name), gen.Lifecycle(contract.LifecycleNormal),
		gen.ReadinessGate(contract.InPlaceUpdateReady), gen.Condition(contract.InPlaceUpdateReady, corev1.ConditionTrue, now.Add(-time.Hour)),
		gen.OnNode("node-1"), gen.Ready(now.Add(-time.Hour)),
	}, options...)
	return podstate.Of(gen.Pod("web-1", all...), now, 0)
}

// after is the value of a pod's label once the action is written.
func after(a action.Action, key string) any {
	for _, patch := range a.Patches {
		meta, _ := patch.Body["metadata"].(map[string]any)
		labels, _ := meta["labels"].(map[string]any)
		if value, ok := labels[key]; ok {
			return value
		}
	}
	return nil
}

func TestThePolicyDecidesTheWay(t *testing.T) {
	for name, c := range map[string]struct {
		policy  Policy
		target  int
		inPlace bool
		wait    string
		newPod  bool
	}{
		"ReCreate, image":          {ReCreate, 1, false, "", true},
		"absent, image":            {"", 1, false, "", true},
		"InPlaceIfPossible, image": {InPlaceIfPossible, 1, true, "", false},
		"InPlaceIfPossible, ports": {InPlaceIfPossible, 2, false, "", true},
		"InPlaceOnly, image":       {InPlaceOnly, 1, true, "", false},
		"InPlaceOnly, ports":       {InPlaceOnly, 2, false, WaitNotInPlace, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := givenWorkload(t, c.policy, nil)
			u, err := g.UpdatePath(g.pod(t), g.revisions[c.target])
			assert.Equal(t, c.inPlace, u != nil)
			assert.Equal(t, c.newPod, g.NeedsNewPod(g.pod(t), g.revisions[c.target]))
			if c.wait == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "pod web-1 cannot be updated in place (podUpdatePolicy InPlaceOnly)")
			assert.Equal(t, c.wait, WaitReason(err))
		})
	}
}

// A node agent takes a moment to tell about a container that was just started. Without one the pod is recreated.
func TestPodsThatWereJustStartedWaitForTheNodeAgent(t *testing.T) {
	for name, c := range map[string]struct {
		policy Policy
		ran    time.Duration
		waits  time.Duration
	}{
		"started just now":            {InPlaceIfPossible, 2 * time.Second, 28 * time.Second},
		"by a clock that is ahead":    {InPlaceIfPossible, -2 * time.Second, 32 * time.Second},
		"a while ago":                 {InPlaceIfPossible, 30 * time.Second, 0},
		"by a clock that is far off":  {InPlaceIfPossible, -time.Hour, 0},
		"never recreated":             {InPlaceOnly, time.Hour, 0},
		"recreated whatever is known": {ReCreate, 2 * time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := givenWorkload(t, c.policy, nil)
			from, to := g.readingRevisions(t)
			o := g.pod(t, gen.FromTemplate(templateOf(t, from)), gen.Revision(from.Name), gen.ReadinessGate(contract.InPlaceUpdateReady), gen.Change(func(pod *corev1.Pod) {
				pod.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now.Add(-c.ran))}
			}))
			u, err := g.UpdatePath(o, to)
			assert.Nil(t, u)
			assert.Equal(t, c.waits == 0, g.NeedsNewPod(o, to))
			assert.Equal(t, c.waits, g.plan.RequeueAfter)
			if c.waits == 0 && c.policy != InPlaceOnly {
				require.NoError(t, err)
				return
			}
			assert.Equal(t, WaitNodeAgentMissing, WaitReason(err))
		})
	}
}

// readingRevisions adds two revisions whose container reads an annotation of different values.
func (g *given) readingRevisions(t *testing.T) (from, to *appsv1.ControllerRevision) {
	t.Helper()
	owner := &metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "web-uid"}
	both := make([]*appsv1.ControllerRevision, 2)
	for i := range both {
		template := gen.Template(gen.Label("app", "web"), gen.Image("main", "app:1"), gen.Annotation("config", fmt.Sprint(i)))
		template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "CONFIG", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['config']"},
		}}}
		r, err := revision.New(owner, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Web"}, &template, int64(i+4), 0)
		require.NoError(t, err)
		both[i] = r
	}
	g.Revisions = NewRevisions(both, inplace.Options{EnvFromMetadata: true})
	return both[0], both[1]
}

func templateOf(t *testing.T, r *appsv1.ControllerRevision) corev1.PodTemplateSpec {
	t.Helper()
	template, err := revision.Template(r)
	require.NoError(t, err)
	return *template
}

func TestPodsOfForgottenRevisionsNeedNewPods(t *testing.T) {
	g := givenWorkload(t, InPlaceIfPossible, nil)
	assert.True(t, g.NeedsNewPod(g.pod(t, gen.Revision("web-gone")), g.revisions[1]))
	assert.True(t, g.NeedsNewPod(g.pod(t, gen.Revision("")), g.revisions[1]))
}

func TestRevisionsWithEqualTemplatesAreTheSame(t *testing.T) {
	g := givenWorkload(t, InPlaceIfPossible, nil)
	twin := g.revisions[0].DeepCopy()
	twin.Name = "web-twin"
	revisions := NewRevisions(append(g.revisions, twin), inplace.Options{})
	for range 2 { // the second time from memory
		assert.True(t, revisions.HasTemplate("twin", g.revisions[0]))
		assert.True(t, revisions.HasTemplate(revision.Hash(g.revisions[0]), g.revisions[0]))
		assert.False(t, revisions.HasTemplate("twin", g.revisions[1]))
	}
	assert.False(t, revisions.HasTemplate("unknown", g.revisions[0]))
	assert.False(t, revisions.HasTemplate("", g.revisions[0]))
	assert.False(t, revisions.HasTemplate("twin", nil))
}

func TestRecordsNameRevisionsByTheirHashWhereThatIsWanted(t *testing.T) {
	g := givenWorkload(t, InPlaceIfPossible, nil)
	for _, short := range []bool{false, true} {
		g.Revisions = NewRevisions(g.revisions, inplace.Options{})
		g.Revisions.ShortNames = short
		u, err := g.UpdatePath(g.pod(t), g.revisions[1])
		require.NoError(t, err)
		want := g.revisions[1].Name
		if short {
			want = revision.Hash(g.revisions[1])
		}
		assert.Equal(t, want, u.Revision())
	}
}

func TestUpdatesInPlaceWriteImageLabelsAndState(t *testing.T) {
	g := givenWorkload(t, InPlaceIfPossible, nil)
	o := g.pod(t)
	u, err := g.UpdatePath(o, g.revisions[1])
	require.NoError(t, err)
	a := g.UpdateInPlace(o, u, g.revisions[1])
	assert.Equal(t, action.UpdateInPlace, a.Verb)
	assert.Equal(t, g.revisions[1].Name, after(a, contract.RevisionLabel))
	assert.Equal(t, contract.LifecycleUpdating, after(a, contract.LifecycleStateLabel))
	assert.Equal(t, EventInPlace, a.Event.Succeeded)
	assert.NotContains(t, fmt.Sprint(a.Patches), "containers:[map", "the pod leaves service first")
	assert.Contains(t, fmt.Sprint(a.LaterPatches), "app:2")
	assert.Zero(t, g.plan.RequeueAfter)

	out := g.pod(t, gen.NotReady(now.Add(-time.Minute)), gen.Condition(contract.InPlaceUpdateReady, corev1.ConditionTrue, now.Add(-time.Hour)))
	a = g.UpdateInPlace(out, u, g.revisions[1])
	assert.Contains(t, fmt.Sprint(a.Patches), "app:2")
	assert.Empty(t, a.LaterPatches)
}

func TestGraceDelaysTheNewImage(t *testing.T) {
	g := givenWorkload(t, InPlaceIfPossible, nil)
	g.GraceSeconds = 20
	o := g.pod(t)
	u, err := g.UpdatePath(o, g.revisions[1])
	require.NoError(t, err)
	a := g.UpdateInPlace(o, u, g.revisions[1])
	assert.Equal(t, g.revisions[1].Name, after(a, contract.RevisionLabel))
	assert.NotContains(t, fmt.Sprint(a.Patches), "containers:[map")
	assert.Zero(t, g.plan.RequeueAfter, "the refresh asks for it once the period has begun")
}

func TestHooksHoldUpdatesAndDeletions(t *testing.T) {
	g := givenWorkload(t, InPlaceIfPossible, &workload.Lifecycle{InPlaceUpdate: hook, PreDelete: hook})
	o := g.pod(t, gen.Label("hook", "on"))
	u, err := g.UpdatePath(o, g.revisions[1])
	require.NoError(t, err)
	update := g.UpdateInPlace(o, u, g.revisions[1])
	assert.Equal(t, action.PatchMetadata, update.Verb)
	assert.Equal(t, contract.LifecyclePreparingUpdate, after(update, contract.LifecycleStateLabel))
	assert.Nil(t, after(update, contract.RevisionLabel))

	deletion := g.Delete(o, DeleteReason{Reason: "ScaleIn", Message: "too many", Event: &action.Event{}, LabelsWhileHeld: map[string]string{"mark": "x"}})
	assert.Equal(t, action.PatchMetadata, deletion.Verb)
	assert.Equal(t, contract.LifecyclePreparingDelete, after(deletion, contract.LifecycleStateLabel))
	assert.Equal(t, "x", after(deletion, "mark"))
	assert.Equal(t, "too many; the preDelete hook holds it", deletion.Message)
	assert.Nil(t, deletion.Event)
	assert.True(t, HasWrites(deletion))

	held := g.pod(t, gen.Label("hook", "on"), gen.Lifecycle(contract.LifecyclePreparingDelete))
	assert.False(t, HasWrites(g.Delete(held, DeleteReason{})), "a held pod needs no write")
}

func TestPodsThatNothingHoldsAreDeleted(t *testing.T) {
	g := givenWorkload(t, ReCreate, &workload.Lifecycle{PreDelete: hook})
	event := &action.Event{Succeeded: "SuccessfulDelete"}
	a := g.Delete(g.pod(t), DeleteReason{Reason: "ScaleIn", Message: "too many", Event: event, LabelsWhileHeld: map[string]string{"mark": "x"}})
	assert.Equal(t, action.Delete, a.Verb)
	assert.Same(t, event, a.Event)
	assert.Empty(t, a.Patches)
}

// A pod that time alone makes available is out of service until then, and not a moment longer.
func TestPodsThatBecomeAvailableAreTouchedBeforeOnly(t *testing.T) {
	for name, c := range map[string]struct {
		ready time.Duration
		until time.Time
	}{
		"available":                {time.Hour, time.Time{}},
		"available in two seconds": {8 * time.Second, now.Add(2 * time.Second)},
	} {
		for _, l := range []*workload.Lifecycle{nil, {InPlaceUpdate: hook, PreDelete: hook}} {
			t.Run(fmt.Sprintf("%s, hooks %t", name, l != nil), func(t *testing.T) {
				g := givenWorkload(t, InPlaceIfPossible, l)
				o := podstate.Of(g.pod(t, gen.Label("hook", "on"), gen.Ready(now.Add(-c.ready))).Pod, now, 10)
				u, err := g.UpdatePath(o, g.revisions[1])
				require.NoError(t, err)
				assert.Equal(t, c.until, g.UpdateInPlace(o, u, g.revisions[1]).Deadline)
				assert.Equal(t, c.until, g.Delete(o, DeleteReason{Reason: "ScaleIn"}).Deadline)
			})
		}
	}
}

func TestThereAreWaysBack(t *testing.T) {
	marking := &workload.LifecycleHook{LabelsHandler: hook.LabelsHandler, MarkPodNotReady: true}
	for name, c := range map[string]struct {
		preDelete *workload.LifecycleHook
		state     string
		back      bool
	}{
		"from PreparingDelete":               {hook, contract.LifecyclePreparingDelete, true},
		"not when the hook marks not ready":  {marking, contract.LifecyclePreparingDelete, false},
		"not of pods that are not preparing": {hook, contract.LifecycleNormal, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := givenWorkload(t, ReCreate, &workload.Lifecycle{PreDelete: c.preDelete})
			a, back := g.CancelDelete(g.pod(t, gen.Lifecycle(c.state)))
			assert.Equal(t, c.back, back)
			assert.Equal(t, c.back, back && after(a, contract.LifecycleStateLabel) == contract.LifecyclePreparingNormal)
		})
	}
	g := givenWorkload(t, InPlaceIfPossible, &workload.Lifecycle{InPlaceUpdate: hook})
	a := g.CancelUpdate(g.pod(t, gen.Label("hook", "on"), gen.Lifecycle(contract.LifecyclePreparingUpdate)))
	assert.Equal(t, contract.LifecycleNormal, after(a, contract.LifecycleStateLabel))
	assert.False(t, HasWrites(g.CancelUpdate(g.pod(t))), "a pod in Normal has nothing to come back from")
}

func TestRefreshWritesNothingToASettledPod(t *testing.T) {
	g := givenWorkload(t, ReCreate, nil)
	assert.Equal(t, Refreshed{}, g.Refresh(g.pod(t), true))
	assert.Empty(t, g.plan.String())
}

func TestFirstConditionsOfNewPodsAskForNoVersion(t *testing.T) {
	g := givenWorkload(t, ReCreate, nil)
	o := g.pod(t, gen.Lifecycle(contract.LifecyclePreparingNormal), gen.Change(func(o *corev1.Pod) { o.Status.Conditions = nil }))
	r := g.Refresh(o, true)
	require.NotNil(t, r.Action)
	assert.Equal(t, "PreparingNormal to Normal", r.Action.Message)
	assert.Equal(t, action.PatchStatus, r.Action.Verb)
	require.Len(t, r.Action.Patches, 1, "conditions and lifecycle share one write")
	assert.True(t, r.Action.Patches[0].AnyVersion)
}

// Somebody may have taken the label away that the preNormal hook was seen with.
func TestPodsPassPreNormalAtTheVersionThatWasSeen(t *testing.T) {
	hook := &workload.Lifecycle{PreNormal: &workload.LifecycleHook{LabelsHandler: map[string]string{"hook": "on"}}}
	for name, tt := range map[string]struct {
		value      string
		becomes    any
		anyVersion bool
	}{
		"the hook is taken": {"on", contract.LifecycleNormal, false},
		"the hook holds on": {"off", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := givenWorkload(t, ReCreate, nil)
			g.Lifecycle = hook
			o := g.pod(t, gen.Lifecycle(contract.LifecyclePreparingNormal), gen.Change(func(o *corev1.Pod) {
				o.Status.Conditions, o.Labels["hook"] = nil, tt.value
			}))
			r := g.Refresh(o, true)
			require.NotNil(t, r.Action)
			assert.Equal(t, tt.becomes, after(*r.Action, contract.LifecycleStateLabel))
			require.Len(t, r.Action.Patches, 1)
			assert.Equal(t, "status", r.Action.Patches[0].Subresource)
			assert.Equal(t, tt.anyVersion, r.Action.Patches[0].AnyVersion)
		})
	}
}

// What is written to a new pod besides its first conditions may be wrong by then: somebody may have released it.
// So do those of pods that are created without a state, until they have the first of them.
func TestFirstConditionsOfPodsWithoutStateAskForNoVersion(t *testing.T) {
	g := givenWorkload(t, InPlaceIfPossible, nil)
	stateless := gen.Change(func(o *corev1.Pod) {
		delete(o.Labels, contract.LifecycleStateLabel)
		o.Status.Conditions = nil
	})
	r := g.Refresh(g.pod(t, gen.ReadinessGate(contract.KruisePodReady), stateless), true)
	require.NotNil(t, r.Action)
	assert.True(t, r.Action.Patches[0].AnyVersion)

	r = g.Refresh(g.pod(t, gen.ReadinessGate(contract.KruisePodReady), stateless, gen.Condition(contract.InPlaceUpdateReady, corev1.ConditionTrue, now)), true)
	require.NotNil(t, r.Action)
	assert.False(t, r.Action.Patches[0].AnyVersion)
}

func TestLabelsOfNewPodsAskForTheirVersion(t *testing.T) {
	g := givenWorkload(t, ReCreate, nil)
	g.MissingLabels = func(podstate.State) map[string]string { return map[string]string{"pod-name": "web-1"} }
	o := g.pod(t, gen.Lifecycle(contract.LifecyclePreparingNormal), gen.OnNode(""), gen.Change(func(o *corev1.Pod) { o.Status.Conditions = nil }))
	r := g.Refresh(o, true)
	require.NotNil(t, r.Action)
	assert.Equal(t, action.PatchMetadata, r.Action.Verb)
	assert.False(t, r.Action.Patches[0].AnyVersion)
}

func TestRefreshCompletesLabels(t *testing.T) {
	g := givenWorkload(t, ReCreate, nil)
	g.MissingLabels = func(podstate.State) map[string]string { return map[string]string{"pod-name": "web-1"} }
	r := g.Refresh(g.pod(t), true)
	require.NotNil(t, r.Action)
	assert.Equal(t, "web-1", after(*r.Action, "pod-name"))
	assert.False(t, r.Action.Patches[0].AnyVersion)
}

func TestRefreshEndsUpdatesThatNobodyWants(t *testing.T) {
	for _, wanted := range []bool{true, false} {
		g := givenWorkload(t, InPlaceIfPossible, &workload.Lifecycle{InPlaceUpdate: hook})
		r := g.Refresh(g.pod(t, gen.Label("hook", "on"), gen.Lifecycle(contract.LifecyclePreparingUpdate)), wanted)
		assert.Equal(t, wanted, r.Action != nil)
	}
}

func TestHooksThatHoldAreExplained(t *testing.T) {
	l := &workload.Lifecycle{PreNormal: hook, InPlaceUpdate: hook, PreDelete: hook}
	for state, reason := range map[string]string{
		contract.LifecyclePreparingNormal: "PreNormalHook",
		contract.LifecyclePreparingUpdate: "InPlaceUpdateHook",
		contract.LifecycleUpdated:         "InPlaceUpdateHook",
		contract.LifecyclePreparingDelete: "PreDeleteHook",
	} {
		t.Run(state, func(t *testing.T) {
			g := givenWorkload(t, InPlaceIfPossible, l)
			r := g.Refresh(g.pod(t, gen.Lifecycle(state)), false)
			assert.Nil(t, r.Action)
			require.Len(t, g.plan.Waits, 1)
			assert.Equal(t, reason, g.plan.Waits[0].Reason)
			assert.Equal(t, "web-1", g.plan.Waits[0].Object)
		})
	}
}

func TestUnreadableRecordsBeginTheUpdateAgain(t *testing.T) {
	g := givenWorkload(t, InPlaceIfPossible, nil)
	o := g.pod(t, gen.NotReady(now.Add(-time.Minute)), gen.Annotation(contract.InPlaceUpdateStateAnnotation, "{"), gen.Image("main", "app:0"), gen.Lifecycle(contract.LifecycleUpdating),
		gen.Condition(contract.InPlaceUpdateReady, corev1.ConditionFalse, now.Add(-time.Minute)))
	r := g.Refresh(o, true)
	require.NotNil(t, r.Action)
	assert.True(t, r.Updating)
	assert.Contains(t, fmt.Sprint(r.Action.Patches), "app:1", "the pod gets what its own revision says")
}

// A pod that has waited for its resources to the deadline needs a new one, where the policy lets it have one.
func TestDeadlineOfResizes(t *testing.T) {
	deadline := int32(60)
	refused := func(since time.Duration, revision string) action.Refusals {
		return action.Refusals{{Verb: action.UpdateInPlace, Kind: "pod", Reason: "Refresh"}: {Targets: map[string]action.Refusal{
			string(gen.UID("web-1")): {NodeTooSmall: action.NodeTooSmall{Since: now.Add(-since), Revision: revision}},
		}}}
	}
	for name, tt := range map[string]struct {
		policy   Policy
		deadline *int32
		sameNode bool
		since    time.Duration
		revision int
		needs    bool
		wake     time.Duration
	}{
		"at the deadline":              {InPlaceIfPossible, &deadline, false, time.Minute, 1, true, 0},
		"before":                       {InPlaceIfPossible, &deadline, false, 50 * time.Second, 1, false, 10 * time.Second},
		"for another revision":         {InPlaceIfPossible, &deadline, false, time.Minute, 2, false, 0},
		"no deadline":                  {InPlaceIfPossible, nil, false, time.Minute, 1, false, 0},
		"the next pod fares no better": {InPlaceIfPossible, &deadline, true, time.Minute, 1, false, 0},
		"none is recreated":            {InPlaceOnly, &deadline, false, time.Minute, 1, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := givenWorkload(t, tt.policy, nil)
			g.ResizeDeadlineSeconds, g.SameNode = tt.deadline, tt.sameNode
			g.plan.Refusals = refused(tt.since, revision.Hash(g.revisions[tt.revision]))
			u, err := g.UpdatePath(g.pod(t), g.revisions[1])
			require.NoError(t, err)
			assert.Equal(t, tt.needs, u == nil)
			assert.Equal(t, tt.needs, g.NeedsNewPod(g.pod(t), g.revisions[1]))
			assert.False(t, g.ResizeOverdue(g.pod(t)), "it is not at that revision")
			assert.Equal(t, tt.wake, g.plan.RequeueAfter)
		})
	}
}

// A pod waits out of service for a node agent that has gone: it gets a successor where the policy allows one, and serves
// as it is where not.
func TestPodsDoNotWaitForAnAgentThatHasGone(t *testing.T) {
	for _, policy := range []Policy{InPlaceIfPossible, InPlaceOnly} {
		g := givenWorkload(t, policy, nil)
		g.Revisions = NewRevisions(g.revisions, inplace.Options{EnvFromMetadata: true})
		waits := func(since time.Duration) podstate.State {
			at := now.Add(-since).Format(time.RFC3339)
			return g.pod(t, gen.NotReady(now.Add(-since)), gen.Lifecycle(contract.LifecycleUpdating), gen.Change(func(pod *corev1.Pod) {
				id := pod.Status.ContainerStatuses[0].ContainerID
				pod.Annotations = map[string]string{
					contract.RuntimeContainersMetaAnnotation: `{"containers":[{"name":"main","containerID":"` + id + `","hashes":{"extractedEnvFromMetadataHash":1}}]}`,
					contract.InPlaceUpdateStateAnnotation: `{"revision":"` + g.revisions[0].Name + `","updateTimestamp":"` + at + `","restarts":{"main":"` + id +
						`"},"containerBatchesRecord":[{"timestamp":"` + at + `","containers":["main"]}]}`,
				}
				podstate.Condition(pod, contract.InPlaceUpdateReady).Status = corev1.ConditionFalse
			}), gen.Condition(contract.InPlaceUpdateReady, corev1.ConditionFalse, now.Add(-since)))
		}
		assert.False(t, g.Overdue(waits(time.Minute)))
		o := waits(2 * time.Minute)
		r := g.Refresh(o, true)
		assert.True(t, r.Updating)
		assert.Equal(t, WaitNodeAgentMissing, g.plan.Waits[len(g.plan.Waits)-1].Reason)
		u, err := g.UpdatePath(o, g.revisions[0])
		if policy == InPlaceOnly {
			require.NotNil(t, r.Action)
			assert.Contains(t, fmt.Sprint(r.Action.Patches), "InPlaceUpdateReady")
			assert.Nil(t, after(*r.Action, contract.LifecycleStateLabel), "it counts as one that is being updated")
			assert.False(t, g.Overdue(o))
			continue
		}
		assert.Nil(t, r.Action)
		assert.True(t, g.Overdue(o))
		require.NoError(t, err)
		assert.Nil(t, u)
		assert.Equal(t, "the node agent has not restarted its containers", g.WhyNewPod(o, g.revisions[0]))
	}
}
