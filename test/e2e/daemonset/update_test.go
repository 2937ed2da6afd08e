package daemonset

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/forecasts"
	"github.com/flotilla-project/flotilla/test/story"
)

// Images and resources change in place; what cannot is recreated.
func TestInPlaceUpdateKeepsThePods(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), inPlace)
	givenSet(t, set)
	n := len(nodes())
	before := podsOf(t, set)

	end := world.Always(t, set.Namespace, story.AtLeastReady(n-1))
	rolls(t, set, image("v2"))
	updated(t, set, n)
	after := podsOf(t, set)
	assert.Equal(t, story.Identities(before), story.Identities(after))
	assert.Equal(t, slices.Repeat([]string{app + "v2"}, n), story.Images(after))
	for i := range after {
		assert.EqualValues(t, 1, after[i].Status.ContainerStatuses[0].RestartCount, after[i].Name)
	}

	rolls(t, set, func(s *v1beta1.DaemonSet) {
		s.Spec.Template.Annotations = map[string]string{"example.io/note": "new"}
	})
	updated(t, set, n)
	assert.Equal(t, story.ContainerIDs(after), story.ContainerIDs(podsOf(t, set)), "metadata restarts nothing")

	rolls(t, set, func(s *v1beta1.DaemonSet) {
		s.Spec.Template.Spec.Containers[0].Args = []string{"-ready-after", "1s"}
	})
	updated(t, set, n)
	end()
	for _, o := range story.Identities(podsOf(t, set)) {
		assert.NotContains(t, story.Identities(before), o, "an argument needs a new pod")
	}
}

func TestResourcesChangeWithoutARestart(t *testing.T) {
	t.Parallel()
	requests := func(cpu string) change {
		return func(s *v1beta1.DaemonSet) {
			s.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		}
	}
	set := newSet(world.Namespace(t), inPlace, requests("10m"))
	givenSet(t, set)
	before := podsOf(t, set)
	rolls(t, set, requests("20m"))
	updated(t, set, len(nodes()))
	after := podsOf(t, set)
	assert.Equal(t, story.Identities(before), story.Identities(after))
	assert.Equal(t, story.ContainerIDs(before), story.ContainerIDs(after))
	for i := range after {
		assert.Equal(t, "20m", after[i].Status.ContainerStatuses[0].Resources.Requests.Cpu().String(), after[i].Name)
	}
}

// One pod after the other is replaced, from the last name of a node down.
func TestRecreateReplacesThePodsInOrder(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t))
	givenSet(t, set)
	n := len(nodes())
	before := story.Identities(podsOf(t, set))
	var order []string
	end := world.Always(t, set.Namespace, func(pods story.Pods) error {
		for _, o := range pods {
			if o.DeletionTimestamp != nil && !slices.Contains(order, o.Spec.NodeName) {
				order = append(order, o.Spec.NodeName)
			}
		}
		return story.AtLeastReady(n - 1)(pods)
	})
	rolls(t, set, image("v2"))
	updated(t, set, n)
	end()
	backward := nodes()
	slices.Reverse(backward)
	assert.Equal(t, backward, order)
	for _, o := range story.Identities(podsOf(t, set)) {
		assert.NotContains(t, before, o)
	}
}

// In a surge every node has a pod in service at every moment, and never more than two.
func TestSurgesKeepEveryNodeInService(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), func(s *v1beta1.DaemonSet) {
		s.Spec.MinReadySeconds = 1
		r := s.Spec.UpdateStrategy.RollingUpdate
		r.MaxUnavailable, r.MaxSurge = new(intstr.FromInt32(0)), new(intstr.FromInt32(1))
	})
	givenSet(t, set)
	end := world.Always(t, set.Namespace, func(pods story.Pods) error {
		ready, active := map[string]bool{}, map[string]int{}
		for _, o := range pods {
			if o.DeletionTimestamp == nil && o.Spec.NodeName != "" {
				active[o.Spec.NodeName]++
				ready[o.Spec.NodeName] = ready[o.Spec.NodeName] || story.IsReady(o)
			}
		}
		two := 0
		for node, n := range active {
			if !ready[node] {
				return fmt.Errorf("node %s has no pod in service", node)
			}
			if n > 1 {
				two++
			}
			if n > 2 || two > 1 {
				return fmt.Errorf("pods by node are %v", active)
			}
		}
		return story.Want(len(ready) == len(nodes()), "nodes with pods are %v", active)
	})
	rolls(t, set, image("v2"))
	updated(t, set, len(nodes()))
	end()
	assert.Equal(t, nodes(), nodesOf(podsOf(t, set)))
}

func TestPartitionAndSelectorHoldNodesBack(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), inPlace)
	givenSet(t, set)
	all := nodes()
	last, n := all[len(all)-1], len(all)
	rolls(t, set, image("v2"), partition(int32(n-1)))
	updated(t, set, 1)
	assert.Equal(t, app+"v2", podOn(t, set, last).Spec.Containers[0].Image)
	assert.Equal(t, v1beta1.ReasonPartitionReached, story.Condition(set, v1beta1.DaemonSetProgressing).Reason)

	chosen := labelled(t, set.Namespace, all[0])
	rolls(t, set, partition(0), rolling(func(r *v1beta1.RollingUpdateDaemonSet) {
		r.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{chosen: "yes"}}
	}))
	updated(t, set, 2)
	assert.Equal(t, app+"v2", podOn(t, set, all[0]).Spec.Containers[0].Image)

	rolls(t, set, rolling(func(r *v1beta1.RollingUpdateDaemonSet) { r.UnselectedNodePolicy = v1beta1.RevertUnselectedNodes }))
	updated(t, set, 1)
	assert.Equal(t, app+"v1", podOn(t, set, last).Spec.Containers[0].Image, "it is not selected and returns")

	label(t, chosen, new("yes"), all...)
	updated(t, set, n)
}

func TestPausedUpdatesNothing(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t))
	givenSet(t, set)
	pause := func(on bool) change {
		return rolling(func(r *v1beta1.RollingUpdateDaemonSet) { r.Paused = &on })
	}
	rolls(t, set, image("v2"), pause(true))
	updated(t, set, 0)
	assert.Equal(t, v1beta1.ReasonPaused, story.Condition(set, v1beta1.DaemonSetProgressing).Reason)
	require.NoError(t, world.Client.Delete(t.Context(), &podsOf(t, set)[0]))
	updated(t, set, 1)
	rolls(t, set, pause(false))
	updated(t, set, len(nodes()))
}

func TestOnDeleteWaitsForTheUser(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), func(s *v1beta1.DaemonSet) {
		s.Spec.UpdateStrategy = v1beta1.DaemonSetUpdateStrategy{Type: v1beta1.OnDeleteStrategyType}
	})
	givenSet(t, set)
	rolls(t, set, image("v2"))
	updated(t, set, 0)
	doomed := &podsOf(t, set)[0]
	require.NoError(t, world.Client.Delete(t.Context(), doomed))
	updated(t, set, 1)
	assert.Equal(t, app+"v2", podOn(t, set, doomed.Spec.NodeName).Spec.Containers[0].Image)
}

func TestABadImageIsFixedForward(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), inPlace)
	givenSet(t, set)
	n := len(nodes())
	end := world.Always(t, set.Namespace, story.AtLeastReady(n-1))
	rollout := forecasts.Edit(t, world, set, image("no-such-version"), "--crash", app+"no-such-version")
	story.Eventually(t, "one pod stuck on the image", func(context.Context) error {
		stuck := 0
		for _, o := range podsOf(t, set) {
			if s := o.Status.ContainerStatuses; len(s) == 1 && s[0].State.Waiting != nil && o.Spec.Containers[0].Image == app+"no-such-version" {
				stuck++
			}
		}
		return story.Want(stuck == 1, "%d pods are stuck", stuck)
	})
	story.Reaches(t, world, set, "what the kubelet says", func(s *v1beta1.DaemonSet) error {
		c := story.Condition(s, "Ready")
		return story.Want(c.Status == metav1.ConditionFalse && strings.Contains(c.Message, "ImagePull"), "condition Ready is %+v", c)
	})
	rollout.ComesTrue(t)
	rolls(t, set, image("v2"))
	updated(t, set, n)
	end()
}

// The next node is updated only once the pod before has been ready for minReadySeconds.
func TestMinReadySecondsSlowTheUpdate(t *testing.T) {
	t.Parallel()
	const minReady = 3 * time.Second
	set := newSet(world.Namespace(t), func(s *v1beta1.DaemonSet) { s.Spec.MinReadySeconds = int32(minReady.Seconds()) })
	givenSet(t, set)
	before := map[string]bool{}
	for _, o := range podsOf(t, set) {
		before[string(o.UID)] = true
	}
	rolls(t, set, image("v2"))
	updated(t, set, len(nodes()))
	pods := podsOf(t, set)
	slices.Reverse(pods) // the order of the update
	for i := range pods[1:] {
		ready := story.PodCondition(&pods[i], corev1.PodReady).LastTransitionTime
		pause := pods[i+1].CreationTimestamp.Sub(ready.Time)
		assert.GreaterOrEqual(t, pause, minReady-time.Second, "between %s and %s; times are whole seconds", pods[i].Name, pods[i+1].Name)
		assert.False(t, before[string(pods[i].UID)])
	}
}

// A rollback takes the old revision again, and the set keeps as many old revisions as its history limit.
func TestRollbackAndHistory(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), inPlace, func(s *v1beta1.DaemonSet) { s.Spec.RevisionHistoryLimit = new(int32(1)) })
	givenSet(t, set)
	n, first := len(nodes()), set.Status.UpdateRevision
	note := func(text string) change {
		return func(s *v1beta1.DaemonSet) { s.Spec.Template.Annotations = map[string]string{"example.io/note": text} }
	}
	for _, text := range []string{"a", "b"} {
		rolls(t, set, note(text))
		updated(t, set, n)
	}
	second := set.Status.UpdateRevision
	rolls(t, set, note("a"))
	updated(t, set, n)
	require.NotEqual(t, second, set.Status.UpdateRevision)
	rolls(t, set, note("b"))
	updated(t, set, n)
	assert.Equal(t, second, set.Status.UpdateRevision)
	story.Eventually(t, "the cut", func(ctx context.Context) error {
		list := &appsv1.ControllerRevisionList{}
		if err := world.Client.List(ctx, list, client.InNamespace(set.Namespace)); err != nil {
			return err
		}
		gone := !slices.ContainsFunc(list.Items, func(r appsv1.ControllerRevision) bool { return r.Name == set.Name+"-"+first })
		return story.Want(len(list.Items) == 2 && gone, "there are %d revisions", len(list.Items))
	})
}

func TestForecastsComeTrue(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), inPlace)
	givenSet(t, set)
	world.ForecastsComeTrue(t, set.Namespace, "ads/web", app+"v2", func() { settles(t, set) })
}
