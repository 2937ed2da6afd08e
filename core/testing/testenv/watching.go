package testenv

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
)

// Edit patches the current object. o is set to the object that was written.
func Edit[T client.Object](t testing.TB, c client.Client, o T, change func(T)) {
	t.Helper()
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(o), o))
	before := o.DeepCopyObject().(client.Object)
	change(o)
	require.NoError(t, c.Patch(t.Context(), o, client.MergeFrom(before)))
}

// Passes returns the first state of the object that the check accepts, of all its states after o. It misses none, however
// short, also not the last one before the object is gone. After await.Limit without a further state it fails the test.
func Passes[T client.Object](t testing.TB, e *Environment, o T, check func(T) bool) T {
	t.Helper()
	c, err := client.NewWithWatch(e.Config, client.Options{Scheme: e.Scheme})
	require.NoError(t, err)
	kind, err := c.GroupVersionKindFor(o)
	require.NoError(t, err)
	list, err := e.Scheme.New(kind.GroupVersion().WithKind(kind.Kind + "List"))
	require.NoError(t, err)
	states, err := c.Watch(t.Context(), list.(client.ObjectList), &client.ListOptions{
		Namespace:     o.GetNamespace(),
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, o.GetName()),
		Raw:           &metav1.ListOptions{ResourceVersion: o.GetResourceVersion()},
	})
	require.NoError(t, err)
	defer states.Stop()
	for {
		event := await.Receive(t, states.ResultChan(), "%s has not passed through the state", o.GetName())
		state, ok := event.Object.(T)
		require.True(t, ok, "%s: %v", event.Type, event.Object)
		if check(state) {
			return state
		}
		require.NotEqual(t, watch.Deleted, event.Type, "%s is gone: %v", o.GetName(), state)
	}
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
