package cloneset

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/story"
)

const app = "flotilla/demo-app:"

// newSet is a CloneSet "web" of the demo application at v1, updated in place, one pod at a time.
func newSet(namespace string, replicas int32, change ...func(*v1beta1.CloneSet)) *v1beta1.CloneSet {
	set := &v1beta1.CloneSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace},
		Spec: v1beta1.CloneSetSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
				Spec: corev1.PodSpec{
					Containers:                    []corev1.Container{{Name: "main", Image: app + "v1"}},
					TerminationGracePeriodSeconds: new(int64(5)),
				},
			},
			UpdateStrategy: v1beta1.CloneSetUpdateStrategy{
				Type: v1beta1.RollingUpdate,
				RollingUpdate: &v1beta1.RollingUpdateCloneSetStrategy{
					PodUpdatePolicy: v1beta1.InPlaceIfPossible,
					MaxUnavailable:  new(intstr.FromInt32(1)),
				},
			},
		},
	}
	for _, c := range change {
		c(set)
	}
	return set
}

func recreating(set *v1beta1.CloneSet) {
	set.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = v1beta1.ReCreate
}

// givenSet creates the set and waits until it is as it should be.
func givenSet(t *testing.T, set *v1beta1.CloneSet) {
	t.Helper()
	require.NoError(t, world.Client.Create(t.Context(), set))
	settles(t, set)
}

// edit changes the live set, again when somebody else was faster.
func edit(t *testing.T, set *v1beta1.CloneSet, change func(*v1beta1.CloneSet)) {
	t.Helper()
	story.Eventually(t, "the edit", func(ctx context.Context) error {
		if err := world.Client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		change(set)
		return world.Client.Update(ctx, set)
	})
}

func image(version string) func(*v1beta1.CloneSet) {
	return func(set *v1beta1.CloneSet) { set.Spec.Template.Spec.Containers[0].Image = app + version }
}

// settles waits until the set's status describes its spec and all its pods are as wanted.
func settles(t *testing.T, set *v1beta1.CloneSet) {
	t.Helper()
	story.Eventually(t, "rollout of "+set.Name, func(ctx context.Context) error {
		if err := world.Client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		s := set.Status
		if s.ObservedGeneration != set.Generation {
			return fmt.Errorf("status describes generation %d of %d", s.ObservedGeneration, set.Generation)
		}
		pods := active(podsOf(t, set))
		return story.Want(condition(set, "Ready") == corev1.ConditionTrue && s.AvailableReplicas == *set.Spec.Replicas &&
			len(pods) == int(*set.Spec.Replicas), "status is %+v with %d pods", s, len(pods))
	})
}

func condition(set *v1beta1.CloneSet, name string) corev1.ConditionStatus {
	for _, c := range set.Status.Conditions {
		if c.Type == name {
			return c.Status
		}
	}
	return ""
}

// podsOf are the pods of the set, in the order of their names.
func podsOf(t *testing.T, set *v1beta1.CloneSet) []corev1.Pod {
	t.Helper()
	list := &corev1.PodList{}
	require.NoError(t, world.Client.List(t.Context(), list, client.InNamespace(set.Namespace)))
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return list.Items
}

func active(pods []corev1.Pod) []corev1.Pod {
	return slices.DeleteFunc(pods, func(o corev1.Pod) bool { return o.DeletionTimestamp != nil })
}

// identity is what a pod keeps when it is updated in place.
type identity struct{ name, uid, ip, node string }

func identities(pods []corev1.Pod) []identity {
	var all []identity
	for i := range pods {
		o := &pods[i]
		all = append(all, identity{o.Name, string(o.UID), o.Status.PodIP, o.Spec.NodeName})
	}
	return all
}

func images(pods []corev1.Pod) []string {
	var all []string
	for i := range pods {
		all = append(all, pods[i].Spec.Containers[0].Image)
	}
	return all
}

// atLeastReady judges that n pods are in service in every state, once as many have been.
func atLeastReady(n int) func(story.Pods) error {
	return func(pods story.Pods) error {
		return story.Want(pods.Ready() >= n, "%d pods are ready, at least %d must be", pods.Ready(), n)
	}
}
