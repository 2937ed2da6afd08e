package testenv

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Edit patches the current object. o is set to the object that was written.
func Edit[T client.Object](t testing.TB, c client.Client, o T, change func(T)) {
	t.Helper()
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(o), o))
	before := o.DeepCopyObject().(client.Object)
	change(o)
	require.NoError(t, c.Patch(t.Context(), o, client.MergeFrom(before)))
}

// Pods returns the pods of the namespace that are not terminating, ordered by name.
func (e *Environment) Pods(t testing.TB, namespace string) []corev1.Pod {
	t.Helper()
	list := &corev1.PodList{}
	require.NoError(t, e.Client(t).List(t.Context(), list, client.InNamespace(namespace)))
	pods := slices.DeleteFunc(list.Items, func(o corev1.Pod) bool { return o.DeletionTimestamp != nil })
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods
}

// Identities returns name, UID and node of the pods, which an in-place update keeps.
func Identities(pods []corev1.Pod) []string {
	var all []string
	for i := range pods {
		all = append(all, fmt.Sprintf("%s %s %s", pods[i].Name, pods[i].UID, pods[i].Spec.NodeName))
	}
	return all
}
