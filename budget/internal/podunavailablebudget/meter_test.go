package podunavailablebudget

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/series"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/disruption"
)

func TestMetricsTellOfEachBudget(t *testing.T) {
	web := types.NamespacedName{Namespace: "metered", Name: "web"}
	status := v1beta1.PodUnavailableBudgetStatus{TotalReplicas: 6, DesiredAvailable: 4, CurrentAvailable: 5, UnavailableAllowed: 1}
	meter{}.show(web, &status, 3)
	assert.Equal(t, []string{
		"pods[web allowed]=1", "pods[web current]=5", "pods[web desired]=4", "pods[web guarded]=3", "pods[web total]=6",
	}, series.Of(t, "flotilla_budget_", "metered"))
	meter{}.Forget(web)
	assert.Empty(t, series.Of(t, "flotilla_budget_", "metered"))
}

func TestGuardedPodsHaveAMark(t *testing.T) {
	marked, legacy, bare, terminating := gen.Pod("a"), gen.Pod("b"), gen.Pod("c"), gen.Pod("d")
	marked.Annotations = map[string]string{v1beta1.RelatedAnnotation: "web"}
	legacy.Annotations = map[string]string{v1beta1.LegacyRelatedAnnotation: "other"}
	terminating.Annotations, terminating.DeletionTimestamp = marked.Annotations, &metav1.Time{Time: time.Unix(1, 0)}
	assert.EqualValues(t, 2, disruption.Guarded([]*corev1.Pod{marked, legacy, bare, terminating}))
}

// wakes is a queue that keeps the pauses of what is added.
type wakes struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	after []time.Duration
}

func (w *wakes) AddAfter(_ reconcile.Request, after time.Duration) { w.after = append(w.after, after) }

// Marks come one by one, and a pass over a budget costs as much as it has pods.
func TestMarksAreGathered(t *testing.T) {
	unmarked := gen.Pod("a", gen.Ready(gen.Epoch()))
	marked := unmarked.DeepCopy()
	marked.Annotations = map[string]string{v1beta1.RelatedAnnotation: "web"}
	gone := marked.DeepCopy()
	gone.Status.Phase = corev1.PodFailed
	budgets := func(client.Object) []types.NamespacedName { return []types.NamespacedName{{Name: "web"}} }
	for name, tc := range map[string]struct {
		before, after *corev1.Pod
		want          []time.Duration
	}{
		"nothing that counts": {marked, marked, nil},
		"a mark":              {unmarked, marked, []time.Duration{marksBatch}},
		"availability":        {marked, gone, []time.Duration{batch}},
	} {
		q := &wakes{}
		updated(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}, func(o client.Object, after time.Duration) {
			for _, key := range budgets(o) {
				q.AddAfter(reconcile.Request{NamespacedName: key}, after)
			}
		})
		assert.Equal(t, tc.want, q.after, name)
	}
}
