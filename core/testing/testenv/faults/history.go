package faults

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
)

// History has the state of the pods of a namespace at a point in time.
type History struct {
	env                testenv.Environment
	namespace, version string
	pods               map[string]*corev1.Pod // by UID
}

// Record records the present state of the pods.
func Record(t *testing.T, env testenv.Environment, namespace string) History {
	t.Helper()
	list := &corev1.PodList{}
	require.NoError(t, env.Client(t).List(t.Context(), list, client.InNamespace(namespace)))
	h := History{
		env:       env,
		namespace: namespace,
		version:   list.ResourceVersion,
		pods:      map[string]*corev1.Pod{},
	}
	for i := range list.Items {
		h.pods[string(list.Items[i].UID)] = &list.Items[i]
	}
	return h
}

// Version returns the point in time, as a resourceVersion.
func (h History) Version() string { return h.version }

// Replay returns the pods after every event since that point in time.
func (h History) Replay(t *testing.T, show func([]*corev1.Pod)) {
	t.Helper()
	c, err := client.NewWithWatch(h.env.ConfigAs(t, "test"), client.Options{Scheme: h.env.Scheme})
	require.NoError(t, err)
	last := gen.Pod("", gen.Namespaced(h.namespace))
	last.ObjectMeta = metav1.ObjectMeta{Namespace: h.namespace, GenerateName: "the-last-"}
	require.NoError(t, c.Create(t.Context(), last))
	events, err := c.Watch(t.Context(), &corev1.PodList{}, client.InNamespace(h.namespace),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: h.version}})
	require.NoError(t, err)
	defer events.Stop()
	shown := 0
	for e := range events.ResultChan() {
		o, ok := e.Object.(*corev1.Pod)
		require.True(t, ok, "%+v", e.Object)
		if o.Name == last.Name {
			require.Positive(t, shown)
			require.NoError(t, c.Delete(t.Context(), last, client.GracePeriodSeconds(0)))
			return
		}
		h.pods[string(o.UID)] = o
		if e.Type == watch.Deleted {
			delete(h.pods, string(o.UID))
		}
		show(slices.Collect(maps.Values(h.pods)))
		shown++
	}
	t.Fatal("the watch ended early")
}
