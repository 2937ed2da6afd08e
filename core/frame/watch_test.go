package frame

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-project/flotilla/core/testing/gen"
)

var owners = Owners{
	Kind: schema.GroupKind{Group: "apps.kruise.io", Kind: "CloneSet"},
	Candidates: func(_ context.Context, pod *corev1.Pod) []types.NamespacedName {
		return []types.NamespacedName{{Namespace: pod.Namespace, Name: "candidate"}}
	},
}

// woken returns the names of the workloads that a handler puts into a queue.
func woken(t *testing.T, handle func(queue)) []string {
	t.Helper()
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	handle(q)
	var names []string
	for q.Len() > 0 {
		request, _ := q.Get()
		names = append(names, request.Name)
	}
	return names
}

func controlledBy(kind, name string) gen.PodOption {
	return gen.Change(func(pod *corev1.Pod) {
		pod.OwnerReferences = nil
		if name != "" {
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps.kruise.io/v1alpha1", Kind: kind, Name: name, UID: types.UID(name), Controller: new(true)}}
		}
	})
}

func TestPodsWakeTheirOwners(t *testing.T) {
	owned, foreign, orphan := gen.Pod("p", controlledBy("CloneSet", "web")), gen.Pod("p", controlledBy("StatefulSet", "db")), gen.Pod("p")
	handler := owners.Pods()
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want []string
	}{
		"owned": {owned, []string{"web"}}, "of another kind": {foreign, nil}, "without controller": {orphan, []string{"candidate"}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, woken(t, func(q queue) { handler.Create(t.Context(), event.CreateEvent{Object: c.pod}, q) }))
			assert.Equal(t, c.want, woken(t, func(q queue) { handler.Delete(t.Context(), event.DeleteEvent{Object: c.pod}, q) }))
		})
	}
}

func TestChangesWakeWhomTheyConcern(t *testing.T) {
	owned := gen.Pod("p", controlledBy("CloneSet", "web"))
	for name, c := range map[string]struct {
		change gen.PodOption
		want   []string
	}{
		"nothing that a plan reads": {gen.Change(func(pod *corev1.Pod) { pod.ResourceVersion = "7" }), nil},
		"a label":                   {gen.Label("x", "y"), []string{"web"}},
		"released":                  {controlledBy("", ""), []string{"candidate", "web"}},
		"taken by another":          {controlledBy("CloneSet", "shop"), []string{"shop", "web"}},
	} {
		t.Run(name, func(t *testing.T) {
			changed := owned.DeepCopy()
			c.change(changed)
			assert.Equal(t, c.want, woken(t, func(q queue) {
				owners.Pods().Update(t.Context(), event.UpdateEvent{ObjectOld: owned, ObjectNew: changed}, q)
			}))
		})
	}
}

func TestOrphansWakeNobodyWithoutCandidates(t *testing.T) {
	alone := Owners{Kind: owners.Kind}
	assert.Empty(t, woken(t, func(q queue) { alone.Pods().Create(t.Context(), event.CreateEvent{Object: gen.Pod("p")}, q) }))
}

func TestObjectsWakeTheirOwners(t *testing.T) {
	handler := owners.Objects()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: gen.Pod("c", controlledBy("CloneSet", "web")).ObjectMeta}
	assert.Equal(t, []string{"web"}, woken(t, func(q queue) { handler.Create(t.Context(), event.CreateEvent{Object: claim}, q) }))
	claim.OwnerReferences = nil
	assert.Empty(t, woken(t, func(q queue) { handler.Create(t.Context(), event.CreateEvent{Object: claim}, q) }))
}

func TestSeedsDiffer(t *testing.T) {
	at := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	assert.NotEqual(t, Seed("a", at), Seed("b", at), "between workloads")
	assert.NotEqual(t, Seed("a", at), Seed("a", at.Add(time.Nanosecond)), "between passes")
}
