package story

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"
)

// Pods returns the pods of the namespace, in the order of their names.
func (w World) Pods(t *testing.T, namespace string) []corev1.Pod {
	t.Helper()
	pods, err := w.pods(t.Context(), namespace)
	require.NoError(t, err)
	return pods
}

func (w World) pods(ctx context.Context, namespace string) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := w.Client.List(ctx, list, client.InNamespace(namespace))
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, err
}

// Active returns the pods that are not terminating.
func Active(pods []corev1.Pod) []corev1.Pod {
	return slices.DeleteFunc(pods, func(o corev1.Pod) bool { return o.DeletionTimestamp != nil })
}

// Identity is what a pod keeps on an in-place update.
type Identity struct{ Name, UID, IP, Node string }

// Identities returns the identities of the pods, in order.
func Identities(pods []corev1.Pod) []Identity {
	var all []Identity
	for i := range pods {
		o := &pods[i]
		all = append(all, Identity{o.Name, string(o.UID), o.Status.PodIP, o.Spec.NodeName})
	}
	return all
}

// Images returns the image of each pod's first container, in the order of the pods.
func Images(pods []corev1.Pod) []string {
	var all []string
	for i := range pods {
		all = append(all, pods[i].Spec.Containers[0].Image)
	}
	return all
}

// ContainerIDs returns the ID of each pod's first container, in the order of the pods.
func ContainerIDs(pods []corev1.Pod) []string {
	var all []string
	for i := range pods {
		all = append(all, pods[i].Status.ContainerStatuses[0].ContainerID)
	}
	return all
}

// PodCondition returns the pod's condition of that type; its status is empty when there is none.
func PodCondition(o *corev1.Pod, name corev1.PodConditionType) corev1.PodCondition {
	for _, c := range o.Status.Conditions {
		if c.Type == name {
			return c
		}
	}
	return corev1.PodCondition{}
}

// IsReady reports whether the pod's condition Ready is True.
func IsReady(o *corev1.Pod) bool {
	return PodCondition(o, corev1.PodReady).Status == corev1.ConditionTrue
}

// PodIn waits until an active pod of the namespace is in the lifecycle state, and returns it.
func (w World) PodIn(t *testing.T, namespace, state string) *corev1.Pod {
	t.Helper()
	var found *corev1.Pod
	Eventually(t, "a pod in "+state, func(ctx context.Context) error {
		pods, err := w.pods(ctx, namespace)
		if err != nil {
			return err
		}
		pods = Active(pods)
		for i := range pods {
			if pods[i].Labels[contract.LifecycleStateLabel] == state {
				found = &pods[i]
				return nil
			}
		}
		return Want(false, "no pod is in that state")
	})
	return found
}
