package daemonset_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/workloads/conditions"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

type change = func(*v1beta1.DaemonSet)

// newSet is DaemonSet "web" with image app:1 and the defaults of admission, changed.
func newSet(namespace string, changes ...change) *v1beta1.DaemonSet {
	set := &v1beta1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace},
		Spec: v1beta1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: gen.Template(gen.Label("app", "web"), gen.Image("main", "app:1")),
			UpdateStrategy: v1beta1.DaemonSetUpdateStrategy{
				Type: v1beta1.RollingUpdateStrategyType,
				RollingUpdate: &v1beta1.RollingUpdateDaemonSet{
					RollingUpdateType: v1beta1.StandardRollingUpdateType,
					MaxUnavailable:    new(intstr.FromInt32(1)), MaxSurge: new(intstr.FromInt32(0)),
				},
			},
		},
	}
	return changed(changes...)(set)
}

func changed(changes ...change) func(*v1beta1.DaemonSet) *v1beta1.DaemonSet {
	return func(set *v1beta1.DaemonSet) *v1beta1.DaemonSet {
		for _, c := range changes {
			c(set)
		}
		return set
	}
}

func rolling(edit func(*v1beta1.RollingUpdateDaemonSet)) change {
	return func(set *v1beta1.DaemonSet) { edit(set.Spec.UpdateStrategy.RollingUpdate) }
}

func inPlace(set *v1beta1.DaemonSet) {
	set.Spec.UpdateStrategy.RollingUpdate.RollingUpdateType = v1beta1.InPlaceRollingUpdateType
}

func surge(set *v1beta1.DaemonSet) {
	r := set.Spec.UpdateStrategy.RollingUpdate
	r.MaxUnavailable, r.MaxSurge = new(intstr.FromInt32(0)), new(intstr.FromInt32(1))
}

func image(name string) change {
	return func(set *v1beta1.DaemonSet) { set.Spec.Template.Spec.Containers[0].Image = name }
}

// argument changes what only a new pod can have.
func argument(text string) change {
	return func(set *v1beta1.DaemonSet) { set.Spec.Template.Spec.Containers[0].Args = []string{text} }
}

// keep leaves n nodes at the revision that they have.
func keep(n int32) change {
	return rolling(func(r *v1beta1.RollingUpdateDaemonSet) { r.Partition = new(intstr.FromInt32(n)) })
}

// eventually reads the set until the check passes.
func eventually(t *testing.T, c client.Client, set *v1beta1.DaemonSet, check func(*assert.CollectT)) {
	t.Helper()
	await.Until(t, func(collect *assert.CollectT) {
		require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(set), set))
		assert.Equal(collect, set.Generation, set.Status.ObservedGeneration)
		check(collect)
	})
}

// settles waits until that many nodes should run a pod, have an available one, and that many of them an updated one.
func settles(t *testing.T, c client.Client, set *v1beta1.DaemonSet, nodes, updated int32) {
	t.Helper()
	eventually(t, c, set, func(collect *assert.CollectT) {
		s := set.Status
		assert.Equal(collect, []int32{nodes, nodes, nodes, nodes, updated, 0, 0}, []int32{
			s.DesiredNumberScheduled, s.CurrentNumberScheduled, s.NumberReady, s.NumberAvailable, s.UpdatedNumberScheduled,
			s.NumberUnavailable, s.NumberMisscheduled,
		}, "%+v", s)
		assert.Len(collect, active(env.Pods(t, set.Namespace)), int(nodes))
	})
}

func active(pods []corev1.Pod) []corev1.Pod {
	return slices.DeleteFunc(pods, func(o corev1.Pod) bool { return o.DeletionTimestamp != nil })
}

// images are the images of the pods, by node.
func images(pods []corev1.Pod) map[string]string {
	all := map[string]string{}
	for i := range pods {
		all[pods[i].Spec.NodeName] += pods[i].Spec.Containers[0].Image
	}
	return all
}

// progressing is the reason of condition Progressing.
func progressing(set *v1beta1.DaemonSet) string {
	if c := conditions.Get(set.Status.Conditions, v1beta1.DaemonSetProgressing); c != nil {
		return c.Reason
	}
	return ""
}

func revisionOf(pod *corev1.Pod) string { return pod.Labels[contract.RevisionLabel] }

// editNode changes node sim-1, and takes that back at the end of the test.
func editNode(t *testing.T, edit func(*corev1.Node)) {
	t.Helper()
	c, node := env.Client(t), &corev1.Node{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: "sim-1"}, node))
	before := node.DeepCopy()
	edit(node)
	after := node.DeepCopy()
	require.NoError(t, c.Patch(t.Context(), node, client.MergeFrom(before)))
	t.Cleanup(func() { _ = c.Patch(context.Background(), before, client.MergeFrom(after)) })
}
