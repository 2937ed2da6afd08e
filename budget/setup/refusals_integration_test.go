package setup

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv/faults"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/cover"
	"github.com/flotilla-project/flotilla/budget/internal/disruption"
	"github.com/flotilla-project/flotilla/budget/internal/featuregates"
)

// Whatever the server answers to writes of any kind, it hears little of the controllers, however much happens to the
// budgets and pods, and what was wanted happens soon after. The answers are given side by side, each to an operator of
// its own; another one answers the webhooks.
func TestARefusedOperatorIsQuiet(t *testing.T) {
	answerWebhooks(t)
	c := env.Client(t)
	plays := map[string]*refused{}
	for name, err := range faults.Refusals() {
		plays[name] = givenRefused(t, c, err)
	}
	for name := range plays {
		plays[name].begin(t)
	}
	for i, over := 0, false; !over; i++ {
		over = true
		for name := range plays {
			if plays[name].server.Over() {
				continue
			}
			over = false
			touch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"touched":"%d"}}}`, i))
			require.NoError(t, c.Patch(t.Context(), plays[name].budget.DeepCopy(), touch))
			require.NoError(t, c.Patch(t.Context(), plays[name].covered.DeepCopy(), touch))
		}
		<-time.After(100 * time.Millisecond)
	}
	for name := range plays {
		t.Run(name, func(t *testing.T) {
			plays[name].assertDone(t, c)
			assert.Equal(t, 4, plays[name].server.AssertQuiet(t, 2), "a budget, a pod to mark, a pod with a mark of nobody, and the namespace")
		})
	}
}

// refused is a namespace in which each kind of write is wanted, and the server that refuses them.
type refused struct {
	*app
	server         *faults.Refusing
	budget         *v1beta1.PodUnavailableBudget
	covered, loose *corev1.Pod
}

// givenRefused makes a budget, a pod that it covers and a pod that has its mark without that.
func givenRefused(t *testing.T, c client.Client, err *apierrors.StatusError) *refused {
	t.Helper()
	r := &refused{app: givenApp(t, c, 1)}
	r.covered = r.pods[0]
	r.server = &faults.Refusing{Err: err, For: 2 * time.Second, Of: func(q *http.Request) bool {
		_, path, mine := strings.Cut(q.URL.Path, "/namespaces/"+r.namespace)
		return faults.IsWrite(q) && mine && (path == "" || strings.HasPrefix(path, "/pods/") || strings.HasPrefix(path, "/podunavailablebudgets/"))
	}}
	r.loose = r.addPod(t, func(pod *corev1.Pod) {
		pod.OwnerReferences, pod.Annotations = nil, map[string]string{v1beta1.RelatedAnnotation: "web", v1beta1.LegacyRelatedAnnotation: "web"}
	})
	r.budget = newBudget(r.namespace)
	require.NoError(t, c.Create(t.Context(), r.budget))
	r.budget.Status.DisruptedPods = map[string]metav1.Time{"gone": metav1.NewTime(time.Now().Add(-time.Hour))}
	require.NoError(t, c.Status().Update(t.Context(), r.budget))
	return r
}

// begin runs an operator for the namespace.
func (r *refused) begin(t *testing.T) {
	t.Helper()
	s, environment := replica(t, faults.Over(env, r.server.Send), r.namespace, features.Defaults(featuregates.All()...))
	require.NoError(t, s.setup(t.Context(), environment))
	env.Start(t, environment.Manager)
}

// assertDone waits until everything has happened that was refused.
func (r *refused) assertDone(t *testing.T, c client.Client) {
	t.Helper()
	await.Until(t, func(check *assert.CollectT) {
		assert.Equal(check, [4]int32{1, 0, 1, 1}, r.numbers(check, r.budget))
		assert.Equal(check, r.budget.Generation, r.budget.Status.ObservedGeneration)
		assert.Empty(check, r.budget.Status.DisruptedPods, "a grant for a pod that is gone ends")
		require.NoError(check, c.Get(t.Context(), client.ObjectKeyFromObject(r.covered), r.covered))
		assert.Equal(check, "web", cover.Mark(r.covered))
		require.NoError(check, c.Get(t.Context(), client.ObjectKeyFromObject(r.loose), r.loose))
		assert.Empty(check, cover.Mark(r.loose))
		ns := &corev1.Namespace{}
		require.NoError(check, c.Get(t.Context(), client.ObjectKey{Name: r.namespace}, ns))
		assert.Equal(check, "true", ns.Labels[v1beta1.NamespaceLabel])
	})
}

// However often somebody asks, and whatever the budget's words are, refusals of one operation are one Event.
func TestRefusalsOfAPodAreOneEvent(t *testing.T) {
	a := givenApp(t, serve(t, features.Defaults(featuregates.All()...)), 1)
	b := a.budget(t, func(b *v1beta1.PodUnavailableBudget) { b.Spec.MaxUnavailable = new(intstr.FromInt32(0)) })
	for i := range 30 { // the budget is written between them, as each grant writes it
		number := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"number":"%d"}}}`, i))
		require.NoError(t, a.Patch(t.Context(), b, number))
		require.True(t, apierrors.IsTooManyRequests(a.evict(t, a.pods[0])))
	}
	require.True(t, apierrors.IsForbidden(a.Delete(t.Context(), a.pods[0].DeepCopy())))
	told := func(check require.TestingT) (actions []string) {
		all := &eventsv1.EventList{}
		require.NoError(check, a.List(t.Context(), all, client.InNamespace(a.namespace)))
		for i := range all.Items {
			if all.Items[i].Reason == disruption.EventPrevented {
				actions = append(actions, all.Items[i].Action)
			}
		}
		return actions
	}
	await.Until(t, func(check *assert.CollectT) { assert.Contains(check, told(check), "DELETE") }) // the last one
	assert.ElementsMatch(t, []string{"EVICT", "DELETE"}, told(t))

	assert.Equal(t, 2, counted(t, a.namespace), "one for each operation")
	require.NoError(t, a.Delete(t.Context(), b))
	await.Until(t, func(check *assert.CollectT) { assert.Zero(check, counted(check, a.namespace)) })
}

// counted returns how many series the metric of refusals has for a namespace.
func counted(t require.TestingT, namespace string) (n int) {
	all := prometheus.NewPedanticRegistry()
	require.NoError(t, all.Register(refusals))
	families, err := all.Gather()
	require.NoError(t, err)
	for _, family := range families {
		for _, series := range family.Metric {
			for _, label := range series.Label {
				if label.GetName() == "namespace" && label.GetValue() == namespace {
					n++
				}
			}
		}
	}
	return n
}
