package cloneset

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/forecasts"
	"github.com/flotilla-project/flotilla/test/story"
)

// taken returns a change with which pods are created with the hook taken.
func taken(h story.Handler) func(*v1beta1.CloneSet) {
	return func(set *v1beta1.CloneSet) { h.TakenIn(&set.Spec.Template) }
}

func replicas(n int32) func(*v1beta1.CloneSet) {
	return func(set *v1beta1.CloneSet) { set.Spec.Replicas = &n }
}

func isReady(o *corev1.Pod) error { return story.Want(story.IsReady(o), "pod %s is not ready", o.Name) }

func TestPreDeleteHoldsPods(t *testing.T) {
	t.Parallel()
	for _, h := range story.Handlers() {
		t.Run(h.Name, func(t *testing.T) {
			t.Parallel()
			set := newSet(world.Namespace(t), 2, taken(h), func(s *v1beta1.CloneSet) {
				s.Spec.Lifecycle = &workload.Lifecycle{PreDelete: &h.Hook}
			})
			givenSet(t, set)
			before := story.Identities(podsOf(t, set))

			edit(t, set, replicas(1))
			doomed := world.PodIn(t, set.Namespace, contract.LifecyclePreparingDelete)
			story.WaitsFor(t, world, set, "PreDeleteHook", doomed.Name)
			require.NoError(t, isReady(doomed), "the pod serves as long as it is held")

			rolls(t, set, replicas(2))
			assert.Equal(t, before, story.Identities(podsOf(t, set)), "a pod that is needed again is taken back")

			rollout := forecasts.Edit(t, world, set, replicas(1))
			doomed = world.PodIn(t, set.Namespace, contract.LifecyclePreparingDelete)
			story.Edit(t, world, doomed, h.Release)
			settles(t, set)
			rollout.ComesTrue(t)
			left := story.Identities(story.Active(podsOf(t, set)))
			assert.Len(t, left, 1)
			assert.NotContains(t, left, story.Identities([]corev1.Pod{*doomed})[0])
		})
	}
}

func TestInPlaceUpdateHookHoldsPodsBeforeAndAfter(t *testing.T) {
	t.Parallel()
	for _, h := range story.Handlers() {
		t.Run(h.Name, func(t *testing.T) {
			t.Parallel()
			h.Hook.MarkPodNotReady = true
			set := newSet(world.Namespace(t), 1, taken(h), func(s *v1beta1.CloneSet) {
				s.Spec.Lifecycle = &workload.Lifecycle{InPlaceUpdate: &h.Hook}
			})
			givenSet(t, set)
			before := podsOf(t, set)

			rollout := forecasts.Edit(t, world, set, image("v2"))
			held := world.PodIn(t, set.Namespace, contract.LifecyclePreparingUpdate)
			story.WaitsFor(t, world, set, "InPlaceUpdateHook", held.Name)
			assert.Equal(t, app+"v1", held.Spec.Containers[0].Image, "nothing changes while the pod is held")
			story.Reaches(t, world, held, "out of service", func(o *corev1.Pod) error {
				return story.Want(!story.IsReady(o), "it is ready")
			})

			story.Edit(t, world, held, h.Release)
			updated := world.PodIn(t, set.Namespace, contract.LifecycleUpdated)
			assert.Equal(t, app+"v2", updated.Spec.Containers[0].Image)
			story.Reaches(t, world, updated, "in service again", isReady)
			story.WaitsFor(t, world, set, "InPlaceUpdateHook", held.Name)
			assert.EqualValues(t, 0, set.Status.AvailableReplicas, "available only when the hook is taken again")

			story.Edit(t, world, updated, h.Take)
			settles(t, set)
			rollout.ComesTrue(t)
			assert.Equal(t, story.Identities(before), story.Identities(podsOf(t, set)))
		})
	}
}

// A kubelet that repeats an old report does so within ten seconds. A hook takes the pod out of service and holds it for
// longer, and nobody sees it ready before it runs another container.
func TestNobodySeesAPodReadyThatAHookTakesOutOfService(t *testing.T) {
	t.Parallel()
	for key, c := range map[string]struct {
		hook  func(*workload.Lifecycle, *workload.LifecycleHook)
		edit  func(*v1beta1.CloneSet)
		state string
	}{
		contract.PreUpdateHookKey: {func(l *workload.Lifecycle, h *workload.LifecycleHook) { l.InPlaceUpdate = h }, image("v2"), contract.LifecyclePreparingUpdate},
		contract.PreDeleteHookKey: {func(l *workload.Lifecycle, h *workload.LifecycleHook) { l.PreDelete = h }, replicas(0), contract.LifecyclePreparingDelete},
	} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			h := story.Handlers()[0]
			h.Hook.MarkPodNotReady = true
			set := newSet(world.Namespace(t), 1, taken(h), func(s *v1beta1.CloneSet) {
				s.Spec.Lifecycle = &workload.Lifecycle{}
				c.hook(s.Spec.Lifecycle, &h.Hook)
			})
			givenSet(t, set)
			end := staysOutOfService(t, set)
			rollout := forecasts.Edit(t, world, set, c.edit)
			held := world.PodIn(t, set.Namespace, c.state)
			story.Reaches(t, world, held, "out of service", func(o *corev1.Pod) error {
				gate := story.PodCondition(o, contract.KruisePodReady)
				return story.Want(!story.IsReady(o) && gate.Status == corev1.ConditionFalse &&
					gate.Message == `[{"userAgent":"Lifecycle","key":"`+key+`"}]`, "conditions are %+v", o.Status.Conditions)
			})
			kubeletReports(t, held.Spec.NodeName)
			story.Edit(t, world, held, h.Release)
			if key == contract.PreUpdateHookKey {
				story.Edit(t, world, world.PodIn(t, set.Namespace, contract.LifecycleUpdated), h.Take)
			}
			settles(t, set)
			end()
			rollout.ComesTrue(t)
		})
	}
}

// staysOutOfService watches the set's pod until the returned function is called. Once it is seen not ready behind the readiness
// gate of hooks, it must not be seen ready with the same container.
func staysOutOfService(t *testing.T, set *v1beta1.CloneSet) (end func()) {
	t.Helper()
	container, left := story.ContainerIDs(podsOf(t, set))[0], false
	stop := world.Always(t, set.Namespace, func(pods story.Pods) error {
		for _, o := range pods {
			ready := story.IsReady(o)
			left = left || !ready && story.PodCondition(o, contract.KruisePodReady).Status == corev1.ConditionFalse
			if left && ready && o.Status.ContainerStatuses[0].ContainerID == container {
				return story.Want(false, "pod %s is ready out of service", o.Name)
			}
		}
		return nil
	})
	return func() {
		t.Helper()
		stop()
		assert.True(t, left)
	}
}

// kubeletReports waits until the node has renewed its lease twice, which takes ten seconds at least. A kubelet sends anew what
// the API server has otherwise as often.
func kubeletReports(t *testing.T, node string) {
	t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: node}}
	require.NoError(t, world.Client.Get(t.Context(), client.ObjectKeyFromObject(lease), lease))
	for range 2 {
		last := *lease.Spec.RenewTime
		story.Reaches(t, world, lease, "another renewal", func(l *coordinationv1.Lease) error {
			return story.Want(l.Spec.RenewTime.After(last.Time), "the last one was at %s", l.Spec.RenewTime)
		})
	}
}

// If the update is rolled back while the hook holds the pod, the pod comes back into service unchanged.
func TestRollbackBeforeTheHookLetsGo(t *testing.T) {
	t.Parallel()
	h := story.Handlers()[0]
	h.Hook.MarkPodNotReady = true
	set := newSet(world.Namespace(t), 1, taken(h), func(s *v1beta1.CloneSet) {
		s.Spec.Lifecycle = &workload.Lifecycle{InPlaceUpdate: &h.Hook}
	})
	givenSet(t, set)
	container := podsOf(t, set)[0].Status.ContainerStatuses[0].ContainerID
	edit(t, set, image("v2"))
	world.PodIn(t, set.Namespace, contract.LifecyclePreparingUpdate)
	rolls(t, set, image("v1"))
	assert.Equal(t, container, podsOf(t, set)[0].Status.ContainerStatuses[0].ContainerID)
}

func TestPreNormalHoldsNewPods(t *testing.T) {
	t.Parallel()
	for _, h := range story.Handlers() {
		t.Run(h.Name, func(t *testing.T) {
			t.Parallel()
			set := newSet(world.Namespace(t), 1, func(s *v1beta1.CloneSet) {
				s.Spec.Lifecycle = &workload.Lifecycle{PreNormal: &h.Hook}
			})
			require.NoError(t, world.Client.Create(t.Context(), set))
			created := world.PodIn(t, set.Namespace, contract.LifecyclePreparingNormal)
			story.Reaches(t, world, created, "ready", isReady)
			story.WaitsFor(t, world, set, "PreNormalHook", created.Name)
			assert.EqualValues(t, 0, set.Status.AvailableReplicas)

			story.Edit(t, world, created, h.Take)
			settles(t, set)
			story.Edit(t, world, created, h.Release)
			rolls(t, set, func(s *v1beta1.CloneSet) { s.Spec.MinReadySeconds = 1 }) // a pass that must not change the pod
			assert.Equal(t, contract.LifecycleNormal, podsOf(t, set)[0].Labels[contract.LifecycleStateLabel])
		})
	}
}
