package daemonset

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/forecasts"
	"github.com/flotilla-project/flotilla/test/story"
)

const app = "flotilla/demo-app:"

type change = func(*v1beta1.DaemonSet)

// newSet returns a DaemonSet "web" of the demo application at v1, which recreates one pod at a time.
func newSet(namespace string, changes ...change) *v1beta1.DaemonSet {
	set := &v1beta1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace},
		Spec: v1beta1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
				Spec: corev1.PodSpec{
					Containers:                    []corev1.Container{{Name: "main", Image: app + "v1"}},
					TerminationGracePeriodSeconds: new(int64(5)),
				},
			},
			UpdateStrategy: v1beta1.DaemonSetUpdateStrategy{
				Type:          v1beta1.RollingUpdateStrategyType,
				RollingUpdate: &v1beta1.RollingUpdateDaemonSet{MaxUnavailable: new(intstr.FromInt32(1))},
			},
		},
	}
	for _, c := range changes {
		c(set)
	}
	return set
}

func rolling(edit func(*v1beta1.RollingUpdateDaemonSet)) change {
	return func(set *v1beta1.DaemonSet) { edit(set.Spec.UpdateStrategy.RollingUpdate) }
}

func inPlace(set *v1beta1.DaemonSet) {
	set.Spec.UpdateStrategy.RollingUpdate.RollingUpdateType = v1beta1.InPlaceRollingUpdateType
}

func image(version string) change {
	return func(set *v1beta1.DaemonSet) { set.Spec.Template.Spec.Containers[0].Image = app + version }
}

// partition keeps n nodes at their revision.
func partition(n int32) change {
	return rolling(func(r *v1beta1.RollingUpdateDaemonSet) { r.Partition = new(intstr.FromInt32(n)) })
}

// onNodesWith limits the set to nodes with the label.
func onNodesWith(label string) change {
	return func(set *v1beta1.DaemonSet) { set.Spec.Template.Spec.NodeSelector = map[string]string{label: "yes"} }
}

// givenSet creates the set and waits until it settles.
func givenSet(t *testing.T, set *v1beta1.DaemonSet) {
	t.Helper()
	require.NoError(t, world.Client.Create(t.Context(), set))
	settles(t, set)
}

// edit makes the changes to the current set, in one write.
func edit(t *testing.T, set *v1beta1.DaemonSet, changes ...change) {
	t.Helper()
	story.Edit(t, world, set, allOf(changes))
}

// allOf returns the change that makes all of them.
func allOf(changes []change) change {
	return func(set *v1beta1.DaemonSet) {
		for _, c := range changes {
			c(set)
		}
	}
}

// rolls makes the changes to the set at rest, and waits until it settles again, as its forecast says.
func rolls(t *testing.T, set *v1beta1.DaemonSet, changes ...change) {
	t.Helper()
	rollout := forecasts.Edit(t, world, set, allOf(changes))
	settles(t, set)
	rollout.ComesTrue(t)
}

// settles waits until the set's status is for its current spec and every node that should run a pod has an available
// one.
func settles(t *testing.T, set *v1beta1.DaemonSet) {
	t.Helper()
	story.Settles(t, world, set, func(set *v1beta1.DaemonSet) error {
		s, pods := set.Status, len(podsOf(t, set))
		settled := s.NumberUnavailable == 0 && pods >= int(s.DesiredNumberScheduled) && pods <= int(s.DesiredNumberScheduled+s.NumberMisscheduled)
		return story.Want(settled, "status is %+v with %d pods", s, pods)
	})
}

// settlesOn waits until the set settles with pods on exactly these nodes.
func settlesOn(t *testing.T, set *v1beta1.DaemonSet, nodes ...string) {
	t.Helper()
	story.Eventually(t, "pods on "+strings.Join(nodes, ", "), func(context.Context) error {
		on := nodesOf(podsOf(t, set))
		return story.Want(slices.Equal(on, nodes), "they are on %v", on)
	})
	story.Reaches(t, world, set, "its count of nodes", func(set *v1beta1.DaemonSet) error {
		return story.Want(int(set.Status.DesiredNumberScheduled) == len(nodes), "status is %+v", set.Status)
	})
	settles(t, set)
}

// updated waits until the set settles with that many updated nodes.
func updated(t *testing.T, set *v1beta1.DaemonSet, nodes int) {
	t.Helper()
	story.Reaches(t, world, set, fmt.Sprintf("%d updated nodes", nodes), func(set *v1beta1.DaemonSet) error {
		return story.Want(int(set.Status.UpdatedNumberScheduled) == nodes, "status is %+v", set.Status)
	})
	settles(t, set)
	require.EqualValues(t, nodes, set.Status.UpdatedNumberScheduled)
}

// podsOf returns the pods of the set that are not terminating, ordered by node.
func podsOf(t *testing.T, set *v1beta1.DaemonSet) []corev1.Pod {
	t.Helper()
	pods := story.Active(world.Pods(t, set.Namespace))
	slices.SortStableFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Spec.NodeName, b.Spec.NodeName) })
	return pods
}

// podOn returns the set's only pod on the node.
func podOn(t *testing.T, set *v1beta1.DaemonSet, node string) *corev1.Pod {
	t.Helper()
	pods := podsOf(t, set)
	i := slices.Index(nodesOf(pods), node)
	require.GreaterOrEqual(t, i, 0, "node %s has no pod", node)
	return &pods[i]
}

// nodesOf returns the nodes of the pods, in the order of the pods.
func nodesOf(pods []corev1.Pod) []string {
	var all []string
	for i := range pods {
		all = append(all, pods[i].Spec.NodeName)
	}
	return all
}

// nodes returns the names of all nodes, in order.
func nodes() []string {
	var all []string
	for _, n := range world.Cluster.Nodes() {
		all = append(all, n.Name())
	}
	return all
}

// others returns the nodes but that one, in order.
func others(node string) []string {
	return slices.DeleteFunc(nodes(), func(n string) bool { return n == node })
}

// label gives nodes a label for the test, and nil takes it off.
func label(t *testing.T, key string, value *string, names ...string) {
	t.Helper()
	for _, name := range names {
		patchNode(t, name, map[string]any{"metadata": map[string]any{"labels": map[string]*string{key: value}}})
	}
}

// patchNode changes a node, also at the end of a test.
func patchNode(t *testing.T, name string, change map[string]any) {
	t.Helper()
	patch, err := json.Marshal(change)
	require.NoError(t, err)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	require.NoError(t, world.Client.Patch(context.WithoutCancel(t.Context()), node, client.RawPatch(types.MergePatchType, patch)))
}

// labelled gives nodes a label that no other test uses until the end of the test, and returns its key.
func labelled(t *testing.T, namespace string, names ...string) (key string) {
	t.Helper()
	key = "example.io/" + namespace
	label(t, key, new("yes"), names...)
	t.Cleanup(func() { label(t, key, nil, nodes()...) })
	return key
}
