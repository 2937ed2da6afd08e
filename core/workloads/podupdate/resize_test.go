package podupdate

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/inplace"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/workloads/revision"
)

// limitedRevisions are the revisions of the workload from now on: the second one has a higher limit of memory.
func (g *given) limitedRevisions(t *testing.T, o inplace.Options) (from, to *appsv1.ControllerRevision) {
	t.Helper()
	owner := &metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "web-uid"}
	for i, memory := range []string{"64Mi", "128Mi"} {
		template := gen.Template(gen.Label("app", "web"), gen.Image("main", "app:1"))
		list := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}
		template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: list, Requests: list}
		r, err := revision.New(owner, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Web"}, &template, int64(i+1), 0)
		require.NoError(t, err)
		g.revisions[i] = r
	}
	g.revisions = g.revisions[:2]
	g.Revisions = NewRevisions(g.revisions, o)
	return g.revisions[0], g.revisions[1]
}

func running() gen.PodOption {
	return gen.Change(func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	})
}

func crashing() gen.PodOption {
	return gen.Change(func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	})
}

// resizedFor has the server note that the pod's memory was written for a revision, so long ago.
func resizedFor(r *appsv1.ControllerRevision, ago time.Duration) gen.PodOption {
	return gen.Change(func(pod *corev1.Pod) {
		pod.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: contract.ResizeManagerPrefix + podstate.ShortHash(r.Name), Subresource: "resize", Time: new(metav1.NewTime(now.Add(-ago))),
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{"f:resources":{"f:limits":{"f:memory":{}}}}}}}`),
		}}
	})
}

// A pod gets the resources of its own revision back unless the update that has resized it may yet be recorded.
func TestUnrecordedResizesAreTakenBack(t *testing.T) {
	for name, tt := range map[string]struct {
		wanted bool
		ago    time.Duration
		back   bool
	}{
		"the pod is at the wanted revision":    {wanted: true, back: true},
		"the update may go on":                 {ago: 20 * time.Second},
		"the update has had the time to go on": {ago: time.Minute, back: true},
		"the server's clock is a minute ahead": {ago: -time.Minute, back: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := givenWorkload(t, InPlaceIfPossible, nil)
			from, to := g.limitedRevisions(t, inplace.Options{Resize: true})
			o := g.pod(t, gen.FromTemplate(templateOf(t, to)), gen.Revision(from.Name), running(), resizedFor(to, tt.ago))
			found := g.Refresh(o, tt.wanted)
			assert.Equal(t, tt.back, found.Updating)
			if !tt.back {
				assert.Nil(t, found.Action)
				assert.Equal(t, 40*time.Second, g.plan.RequeueAfter)
				return
			}
			require.NotNil(t, found.Action)
			assert.Equal(t, "resize", found.Action.Patches[0].Subresource)
			assert.Equal(t, contract.ResizeManagerPrefix+podstate.ShortHash(from.Name), found.Action.Patches[0].FieldManager)
		})
	}
}

// A resize for a third revision that was not recorded is taken back while the update to the pod's own revision is in its
// grace period. The containers of that update have the rest of the period.
func TestAGracePeriodOutlastsAResizeThatIsTakenBack(t *testing.T) {
	g := givenWorkload(t, InPlaceIfPossible, nil)
	owner := &metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "web-uid"}
	for i, c := range []struct{ image, memory string }{{"app:1", "64Mi"}, {"app:2", "64Mi"}, {"app:2", "128Mi"}} {
		template := gen.Template(gen.Label("app", "web"), gen.Image("main", c.image))
		list := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(c.memory)}
		template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: list, Requests: list}
		r, err := revision.New(owner, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Web"}, &template, int64(i+1), 0)
		require.NoError(t, err)
		g.revisions[i] = r
	}
	g.Revisions = NewRevisions(g.revisions, inplace.Options{Resize: true})
	out := g.planned(t, g.revisions[0], g.revisions[1], 20, true)
	out.Pod.Spec.Containers[0].Resources = templateOf(t, g.revisions[2]).Spec.Containers[0].Resources
	out.Pod.ManagedFields = g.pod(t, resizedFor(g.revisions[2], 0)).Pod.ManagedFields

	g.Now = now.Add(5 * time.Second)
	found := g.Refresh(out, true)
	require.NotNil(t, found.Action)
	written := fmt.Sprint(found.Action.Patches)
	assert.NotContains(t, written, "image:app:2", "15 seconds of the grace period are left")
	assert.Contains(t, written, contract.InPlaceUpdateGraceAnnotation)
	assert.Contains(t, written, `"containerResources":{"main":{"limits":{"memory":"64Mi"}`)
}

// A container that is down serves nobody, and its next run would be inside the old limit of its pod.
func TestAHigherLimitOfAContainerThatIsDownNeedsANewPod(t *testing.T) {
	for name, tt := range map[string]struct {
		policy  Policy
		state   gen.PodOption
		inPlace bool
		waits   bool
	}{
		"runs":                        {InPlaceIfPossible, running(), true, false},
		"is down":                     {InPlaceIfPossible, crashing(), false, false},
		"runs, and may be no new one": {InPlaceOnly, running(), true, false},
		"is down, with no new one":    {InPlaceOnly, crashing(), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := givenWorkload(t, tt.policy, nil)
			from, to := g.limitedRevisions(t, inplace.Options{Resize: true})
			o := g.pod(t, gen.FromTemplate(templateOf(t, from)), gen.Revision(from.Name), tt.state)
			u, err := g.UpdatePath(o, to)
			assert.Equal(t, tt.inPlace, u != nil)
			assert.Equal(t, !tt.inPlace, g.NeedsNewPod(o, to))
			if tt.waits {
				assert.Equal(t, WaitNotInPlace, WaitReason(err))
				require.ErrorContains(t, err, "container main: resources.limits.memory: the limit cannot be raised while the container is not running")
				return
			}
			require.NoError(t, err)
			if !tt.inPlace {
				assert.Contains(t, g.WhyNewPod(o, to), "while the container is not running")
			}
		})
	}
}

// The container goes down while the resize is on its way.
func TestAContainerThatGoesDownBeforeItsLimitIsRaisedNeedsANewPod(t *testing.T) {
	for name, tt := range map[string]struct {
		policy Policy
		state  gen.PodOption
		want   bool
	}{
		"in a crash loop":          {InPlaceIfPossible, crashing(), true},
		"running":                  {InPlaceIfPossible, running(), false},
		"none is recreated":        {InPlaceOnly, crashing(), false},
		"others are recreated all": {ReCreate, crashing(), false},
	} {
		t.Run(name, func(t *testing.T) {
			g := givenWorkload(t, tt.policy, nil)
			_, to := g.limitedRevisions(t, inplace.Options{Resize: true})
			o := g.pod(t, gen.FromTemplate(templateOf(t, to)), gen.Revision(to.Name), tt.state, gen.Annotation(contract.InPlaceUpdateStateAnnotation, fmt.Sprintf(
				`{"revision":%q,"updateTimestamp":%[2]q,"lastContainerStatuses":null,"updateResources":true,"raisedLimits":["main"],`+
					`"containerBatchesRecord":[{"timestamp":%[2]q,"containers":["main"]}]}`,
				to.Name, now.Add(-10*time.Second).Format(time.RFC3339))))
			assert.Equal(t, tt.want, g.ResizeOverdue(o))
			if tt.want {
				assert.Contains(t, g.WhyNewPod(o, to), "container main is not running")
			}
			next := g.another(t, to, "app:2")
			u, err := g.UpdatePath(o, next)
			require.NoError(t, err)
			assert.Equal(t, tt.want || tt.policy == ReCreate, u == nil, "its next run would lack the limit at another image, too")
			if tt.want {
				assert.Contains(t, g.WhyNewPod(o, next), "container main is not running")
			}
		})
	}
}

// another adds a revision like the one before with another image.
func (g *given) another(t *testing.T, before *appsv1.ControllerRevision, image string) *appsv1.ControllerRevision {
	t.Helper()
	template := templateOf(t, before)
	template.Spec.Containers[0].Image = image
	owner := &metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "web-uid"}
	r, err := revision.New(owner, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Web"}, &template, before.Revision+1, 0)
	require.NoError(t, err)
	g.Revisions = NewRevisions(append(g.revisions, r), inplace.Options{Resize: true})
	return r
}

// A pod that leaves for a limit that it cannot get any more leaves, however long its hook holds it.
func TestAHeldPodDoesNotComeBackWithoutItsLimit(t *testing.T) {
	for held, want := range map[string]bool{contract.LifecyclePreparingDelete: true, contract.LifecycleNormal: false} {
		g := givenWorkload(t, InPlaceIfPossible, nil)
		_, to := g.limitedRevisions(t, inplace.Options{Resize: true})
		began := now.Add(-time.Hour)
		o := g.pod(t, gen.FromTemplate(templateOf(t, to)), gen.Revision(to.Name), crashing(), gen.Lifecycle(held),
			gen.Annotation(contract.LifecycleTimestampAnnotation, began.Format(time.RFC3339)),
			gen.Annotation(contract.InPlaceUpdateStateAnnotation, fmt.Sprintf(
				`{"revision":%q,"updateTimestamp":%[2]q,"lastContainerStatuses":null,"updateResources":true,"raisedLimits":["main"],`+
					`"containerBatchesRecord":[{"timestamp":%[2]q,"containers":["main"]}]}`,
				to.Name, began.Add(-10*time.Second).Format(time.RFC3339))))
		assert.Equal(t, want, g.ResizeOverdue(o), held)
	}
}

// A pod of which all but the resize is done serves and goes on in its life, with the wait told.
func TestPodsServeWhileTheirNodePutsTheirResourcesOff(t *testing.T) {
	g := givenWorkload(t, InPlaceIfPossible, &workload.Lifecycle{InPlaceUpdate: hook})
	_, to := g.limitedRevisions(t, inplace.Options{Resize: true})
	o := g.pod(t, gen.FromTemplate(templateOf(t, to)), gen.Revision(to.Name), gen.ReadinessGate(contract.InPlaceUpdateReady), gen.AwaitsResize(now.Add(-time.Minute), "1"), gen.Lifecycle(contract.LifecycleUpdating),
		gen.Condition(contract.InPlaceUpdateReady, corev1.ConditionFalse, now.Add(-time.Minute)))
	r := g.Refresh(o, true)
	require.NotNil(t, r.Action)
	assert.True(t, r.Updating)
	assert.Equal(t, contract.LifecycleUpdated, after(*r.Action, contract.LifecycleStateLabel), "the hook is told that the pod may serve")
	assert.Contains(t, fmt.Sprint(r.Action.Patches), "True")
	require.Len(t, g.plan.Waits, 1)
	assert.Equal(t, "ResizeDeferred", g.plan.Waits[0].Reason)
}

// A node that has failed to resize a pod counts like one that puts it off.
func TestFailedResizesHaveTheDeadline(t *testing.T) {
	deadline := int32(60)
	for since, want := range map[time.Duration]bool{time.Minute: true, 50 * time.Second: false} {
		g := givenWorkload(t, InPlaceIfPossible, nil)
		g.ResizeDeadlineSeconds = &deadline
		_, to := g.limitedRevisions(t, inplace.Options{Resize: true})
		o := g.pod(t, gen.FromTemplate(templateOf(t, to)), gen.Revision(to.Name), gen.AwaitsResize(now.Add(-since), "1"), gen.Change(func(pod *corev1.Pod) {
			pending := podstate.Condition(pod, corev1.PodResizePending)
			pending.Type, pending.Reason = corev1.PodResizeInProgress, corev1.PodReasonError
		}))
		assert.Equal(t, want, g.ResizeOverdue(o))
	}
}

// What somebody else asks for, and the node does not give, is not awaited.
func TestResizesOfOthersAreNotAwaited(t *testing.T) {
	g := givenWorkload(t, InPlaceIfPossible, nil)
	_, to := g.limitedRevisions(t, inplace.Options{Resize: true})
	others := gen.Change(func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
	})
	r := g.Refresh(g.pod(t, gen.FromTemplate(templateOf(t, to)), gen.Revision(to.Name), gen.AwaitsResize(now.Add(-time.Minute), "1"), others), true)
	assert.False(t, r.Updating)
	assert.Empty(t, g.plan.Waits)
}
