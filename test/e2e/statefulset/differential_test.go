package statefulset

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/forecasts"
	"github.com/flotilla-project/flotilla/test/story"
)

// stretch is one edit of a trace and the state to wait for after it.
type stretch struct {
	name      string
	replicas  int32
	version   string
	partition int32
	stuck     string // the pod that stays unavailable because of a bad image; empty: the rollout completes
	unordered bool   // all at once: the order of requests is random
}

// contender is one of the two kinds of set.
type contender struct {
	namespace string
	edit      func(t *testing.T, s stretch)
	settles   func(t *testing.T)
	ends      func(t *testing.T) // compares the stretch with its forecast; nil where there is none
	status    func() string
}

func newContenders(t *testing.T, policy appsv1.PodManagementPolicyType) (ours, theirs contender) {
	t.Helper()
	shape := func(s *v1beta1.StatefulSet) {
		withoutGates(s)
		s.Spec.PodManagementPolicy = policy
		s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claimTemplate("data", "1Mi")}
	}
	set := newSet(world.Namespace(t), 0, shape)
	native := builtIn(newSet(world.Namespace(t), 0, shape))
	require.NoError(t, world.Client.Create(t.Context(), set))
	require.NoError(t, world.Client.Create(t.Context(), native))
	var rollout *forecasts.Rollout
	ours = contender{
		namespace: set.Namespace,
		edit: func(t *testing.T, s stretch) {
			t.Helper()
			var args []string
			if s.stuck != "" {
				args = []string{"--crash", app + s.version}
			}
			rollout = forecasts.Edit(t, world, set, changes(replicas(s.replicas), image(s.version), partition(s.partition)), args...)
		},
		ends:    func(t *testing.T) { t.Helper(); rollout.ComesTrue(t) },
		settles: func(t *testing.T) { t.Helper(); settles(t, set) },
		status: func() string {
			s := set.Status
			return fmt.Sprintf("%d ready %d available %d current %d updated %d done %t", s.Replicas, s.ReadyReplicas, s.AvailableReplicas,
				s.CurrentReplicas, s.UpdatedReplicas, s.CurrentRevision == s.UpdateRevision)
		},
	}
	theirs = contender{
		namespace: native.Namespace,
		edit: func(t *testing.T, s stretch) {
			t.Helper()
			story.Edit(t, world, native, func(n *appsv1.StatefulSet) {
				n.Spec.Replicas, n.Spec.Template.Spec.Containers[0].Image = &s.replicas, app+s.version
				n.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: &s.partition}
			})
		},
		settles: func(t *testing.T) { t.Helper(); nativeSettles(t, native) },
		status: func() string {
			s := native.Status
			return fmt.Sprintf("%d ready %d available %d current %d updated %d done %t", s.Replicas, s.ReadyReplicas, s.AvailableReplicas,
				s.CurrentReplicas, s.UpdatedReplicas, s.CurrentRevision == s.UpdateRevision)
		},
	}
	return ours, theirs
}

// run runs a stretch of the trace. It returns the order in which pods were deleted and created, and the state at the
// end.
func (c contender) run(t *testing.T, s stretch) (order, end []string) {
	t.Helper()
	came, went := map[string]bool{}, map[string]bool{}
	for _, o := range world.Pods(t, c.namespace) {
		came[string(o.UID)] = true
	}
	stop := world.Always(t, c.namespace, func(pods story.Pods) error {
		for uid, o := range pods {
			if !came[string(uid)] {
				came[string(uid)] = true
				order = append(order, "+"+o.Name+" "+o.Spec.Containers[0].Image)
			}
			if o.DeletionTimestamp != nil && !went[string(uid)] {
				went[string(uid)] = true
				order = append(order, "-"+o.Name)
			}
		}
		return nil
	})
	c.edit(t, s)
	if s.stuck == "" {
		c.settles(t)
	} else {
		story.Eventually(t, "pod "+s.stuck+" stuck on its image", func(context.Context) error {
			for _, o := range world.Pods(t, c.namespace) {
				if o.Name == s.stuck && isStuck(&o, app+s.version) {
					return nil
				}
			}
			return story.Want(false, "none is")
		})
	}
	stop()
	if c.ends != nil {
		c.ends(t)
	}
	if s.unordered {
		slices.Sort(order)
	}
	return order, append(c.state(t), c.status())
}

// state returns the state of the set's pods, with revisions numbered in order of appearance.
func (c contender) state(t *testing.T) []string {
	t.Helper()
	numbers := map[string]int{}
	var lines []string
	for _, o := range story.Active(world.Pods(t, c.namespace)) {
		hash := o.Labels[contract.RevisionLabel]
		if _, ok := numbers[hash]; !ok {
			numbers[hash] = len(numbers)
		}
		lines = append(lines, fmt.Sprintf("%s %s index %s revision %d ready %t claim %s", o.Name, o.Spec.Containers[0].Image,
			o.Labels[appsv1.PodIndexLabel], numbers[hash], story.IsReady(&o), claimName(&o)))
	}
	return lines
}

func claimName(o *corev1.Pod) string {
	for _, v := range o.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			return v.PersistentVolumeClaim.ClaimName
		}
	}
	return ""
}

// For the same trace the built-in controller and ours create and delete the same pods in the same order, and reach the
// same state after every edit.
func TestTheSameTraceAsTheBuiltInController(t *testing.T) {
	t.Parallel()
	traces := map[appsv1.PodManagementPolicyType][]stretch{
		appsv1.OrderedReadyPodManagement: {
			{name: "create", replicas: 3, version: "v1"},
			{name: "scale out", replicas: 4, version: "v1"},
			{name: "update", replicas: 4, version: "v2"},
			{name: "update to a partition", replicas: 4, version: "v3", partition: 2},
			{name: "scale out at the partition", replicas: 5, version: "v3", partition: 2},
			{name: "finish", replicas: 5, version: "v3"},
			{name: "scale in", replicas: 1, version: "v3"},
			{name: "roll back and scale out", replicas: 2, version: "v1"},
		},
		appsv1.ParallelPodManagement: {
			{name: "create", replicas: 3, version: "v1", unordered: true},
			{name: "scale out", replicas: 4, version: "v1"},
			{name: "update", replicas: 4, version: "v2"},
			{name: "bad image", replicas: 4, version: "no-such-version", stuck: "web-3"},
			{name: "good image", replicas: 4, version: "v3"},
			{name: "update to a partition", replicas: 4, version: "v1", partition: 3},
			{name: "scale in", replicas: 2, version: "v1", partition: 1, unordered: true},
		},
	}
	for policy, trace := range traces {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			ours, theirs := newContenders(t, policy)
			for _, s := range trace {
				wantOrder, wantEnd := theirs.run(t, s)
				order, end := ours.run(t, s)
				assert.Equal(t, wantOrder, order, s.name)
				assert.Equal(t, wantEnd, end, s.name)
			}
		})
	}
}
