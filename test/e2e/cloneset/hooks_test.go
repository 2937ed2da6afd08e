package cloneset

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/story"
)

const hookKey = "example.io/hook"

// handler is one of the two ways in which the outside world holds a pod.
type handler struct {
	name          string
	hook          workload.LifecycleHook
	take, release func(*corev1.Pod)
}

func handlers() []handler {
	return []handler{{
		name:    "label",
		hook:    workload.LifecycleHook{LabelsHandler: map[string]string{hookKey: "on"}},
		take:    func(o *corev1.Pod) { o.Labels[hookKey] = "on" },
		release: func(o *corev1.Pod) { delete(o.Labels, hookKey) },
	}, {
		name: "finalizer",
		hook: workload.LifecycleHook{FinalizersHandler: []string{hookKey}},
		take: func(o *corev1.Pod) { o.Finalizers = append(o.Finalizers, hookKey) },
		release: func(o *corev1.Pod) {
			o.Finalizers = slices.DeleteFunc(o.Finalizers, func(f string) bool { return f == hookKey })
		},
	}}
}

// takenByTemplate lets pods come into the world with the hook taken.
func (h handler) takenByTemplate(set *v1beta1.CloneSet) {
	maps.Copy(set.Spec.Template.Labels, h.hook.LabelsHandler)
	set.Spec.Template.Finalizers = h.hook.FinalizersHandler
}

// givenNamespace is a namespace whose pods let go of the hook at the end, so that it can be deleted.
func givenNamespace(t *testing.T) string {
	t.Helper()
	namespace := world.Namespace(t)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = world.Client.DeleteAllOf(ctx, &v1beta1.CloneSet{}, client.InNamespace(namespace))
		list := &corev1.PodList{}
		_ = world.Client.List(ctx, list, client.InNamespace(namespace))
		for i := range list.Items {
			_ = world.Client.Patch(ctx, &list.Items[i], client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
		}
	})
	return namespace
}

// changePod changes the pod as a user's controller would, again when somebody else was faster.
func changePod(t *testing.T, o *corev1.Pod, change func(*corev1.Pod)) {
	t.Helper()
	story.Eventually(t, "the change of pod "+o.Name, func(ctx context.Context) error {
		if err := world.Client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		change(o)
		return world.Client.Update(ctx, o)
	})
}

// podIn waits until a pod of the set is in the lifecycle state, and returns it.
func podIn(t *testing.T, set *v1beta1.CloneSet, state string) *corev1.Pod {
	t.Helper()
	var found *corev1.Pod
	story.Eventually(t, "a pod in "+state, func(context.Context) error {
		pods := active(podsOf(t, set))
		for i := range pods {
			if pods[i].Labels[contract.LifecycleStateLabel] == state {
				found = &pods[i]
				return nil
			}
		}
		return story.Want(false, "no pod is in that state")
	})
	return found
}

// waitsFor waits until the set's condition Ready is False for the reason and names the pod.
func waitsFor(t *testing.T, set *v1beta1.CloneSet, reason, pod string) {
	t.Helper()
	story.Eventually(t, "condition Ready with reason "+reason, func(ctx context.Context) error {
		if err := world.Client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		for _, c := range set.Status.Conditions {
			if c.Type == "Ready" && c.Status == corev1.ConditionFalse && c.Reason == reason && strings.Contains(c.Message, pod) {
				return nil
			}
		}
		return story.Want(false, "conditions are %+v", set.Status.Conditions)
	})
}

func isReady(o *corev1.Pod) error { return story.Want(story.IsReady(o), "pod %s is not ready", o.Name) }

// reaches waits until the live pod is as the check wants it.
func reaches(t *testing.T, o *corev1.Pod, what string, check func(*corev1.Pod) error) {
	t.Helper()
	story.Eventually(t, o.Name+" "+what, func(ctx context.Context) error {
		if err := world.Client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		return check(o)
	})
}

func TestPreDeleteHoldsPods(t *testing.T) {
	for _, h := range handlers() {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			set := newSet(givenNamespace(t), 2, h.takenByTemplate, func(s *v1beta1.CloneSet) {
				s.Spec.Lifecycle = &workload.Lifecycle{PreDelete: &h.hook}
			})
			givenSet(t, set)
			before := identities(podsOf(t, set))

			edit(t, set, func(s *v1beta1.CloneSet) { s.Spec.Replicas = new(int32(1)) })
			doomed := podIn(t, set, contract.LifecyclePreparingDelete)
			waitsFor(t, set, "PreDeleteHook", doomed.Name)
			require.NoError(t, isReady(doomed), "the pod serves as long as it is held")

			edit(t, set, func(s *v1beta1.CloneSet) { s.Spec.Replicas = new(int32(2)) })
			settles(t, set)
			assert.Equal(t, before, identities(podsOf(t, set)), "a pod that is needed again is taken back")

			edit(t, set, func(s *v1beta1.CloneSet) { s.Spec.Replicas = new(int32(1)) })
			doomed = podIn(t, set, contract.LifecyclePreparingDelete)
			changePod(t, doomed, h.release)
			settles(t, set)
			left := identities(active(podsOf(t, set)))
			assert.Len(t, left, 1)
			assert.NotContains(t, left, identities([]corev1.Pod{*doomed})[0])
		})
	}
}

func TestPreDeleteTakesPodsOutOfService(t *testing.T) {
	t.Parallel()
	h := handlers()[0]
	h.hook.MarkPodNotReady = true
	set := newSet(givenNamespace(t), 2, h.takenByTemplate, func(s *v1beta1.CloneSet) {
		s.Spec.Lifecycle = &workload.Lifecycle{PreDelete: &h.hook}
	})
	givenSet(t, set)
	edit(t, set, func(s *v1beta1.CloneSet) { s.Spec.Replicas = new(int32(1)) })
	doomed := podIn(t, set, contract.LifecyclePreparingDelete)
	reaches(t, doomed, "out of service", func(o *corev1.Pod) error {
		c := podCondition(o, contract.KruisePodReady)
		return story.Want(!story.IsReady(o) && c.Status == corev1.ConditionFalse &&
			c.Message == `[{"userAgent":"Lifecycle","key":"preDeleteHook"}]`, "conditions are %+v", o.Status.Conditions)
	})
	changePod(t, doomed, h.release)
	settles(t, set)
}

func podCondition(o *corev1.Pod, name corev1.PodConditionType) corev1.PodCondition {
	for _, c := range o.Status.Conditions {
		if c.Type == name {
			return c
		}
	}
	return corev1.PodCondition{}
}

func TestInPlaceUpdateHookHoldsPodsBeforeAndAfter(t *testing.T) {
	for _, h := range handlers() {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			h.hook.MarkPodNotReady = true
			set := newSet(givenNamespace(t), 1, h.takenByTemplate, func(s *v1beta1.CloneSet) {
				s.Spec.Lifecycle = &workload.Lifecycle{InPlaceUpdate: &h.hook}
			})
			givenSet(t, set)
			before := podsOf(t, set)

			edit(t, set, image("v2"))
			held := podIn(t, set, contract.LifecyclePreparingUpdate)
			waitsFor(t, set, "InPlaceUpdateHook", held.Name)
			assert.Equal(t, app+"v1", held.Spec.Containers[0].Image, "nothing changes while the pod is held")
			reaches(t, held, "out of service", func(o *corev1.Pod) error {
				return story.Want(!story.IsReady(o), "it is ready")
			})

			changePod(t, held, h.release)
			updated := podIn(t, set, contract.LifecycleUpdated)
			assert.Equal(t, app+"v2", updated.Spec.Containers[0].Image)
			reaches(t, updated, "in service again", isReady)
			waitsFor(t, set, "InPlaceUpdateHook", held.Name)
			assert.EqualValues(t, 0, set.Status.AvailableReplicas, "available only when the hook is taken again")

			changePod(t, updated, h.take)
			settles(t, set)
			assert.Equal(t, identities(before), identities(podsOf(t, set)))
		})
	}
}

// Rolled back before the hook lets go, the pod comes back into service as it was.
func TestRollbackBeforeTheHookLetsGo(t *testing.T) {
	t.Parallel()
	h := handlers()[0]
	h.hook.MarkPodNotReady = true
	set := newSet(givenNamespace(t), 1, h.takenByTemplate, func(s *v1beta1.CloneSet) {
		s.Spec.Lifecycle = &workload.Lifecycle{InPlaceUpdate: &h.hook}
	})
	givenSet(t, set)
	container := podsOf(t, set)[0].Status.ContainerStatuses[0].ContainerID
	edit(t, set, image("v2"))
	podIn(t, set, contract.LifecyclePreparingUpdate)
	edit(t, set, image("v1"))
	settles(t, set)
	assert.Equal(t, container, podsOf(t, set)[0].Status.ContainerStatuses[0].ContainerID)
}

func TestPreNormalHoldsNewPods(t *testing.T) {
	for _, h := range handlers() {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			set := newSet(givenNamespace(t), 1, func(s *v1beta1.CloneSet) {
				s.Spec.Lifecycle = &workload.Lifecycle{PreNormal: &h.hook}
			})
			require.NoError(t, world.Client.Create(t.Context(), set))
			created := podIn(t, set, contract.LifecyclePreparingNormal)
			reaches(t, created, "ready", isReady)
			waitsFor(t, set, "PreNormalHook", created.Name)
			assert.EqualValues(t, 0, set.Status.AvailableReplicas)

			changePod(t, created, h.take)
			settles(t, set)
			changePod(t, created, h.release)
			edit(t, set, func(s *v1beta1.CloneSet) { s.Spec.MinReadySeconds = 1 }) // a pass that must not mind
			settles(t, set)
			assert.Equal(t, contract.LifecycleNormal, podsOf(t, set)[0].Labels[contract.LifecycleStateLabel])
		})
	}
}
