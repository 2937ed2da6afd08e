package setup

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv/faults"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/featuregates"
	"github.com/flotilla-project/flotilla/spread/internal/subsets"
)

// Whatever the server answers to writes of any kind, it hears little of the controllers, however much happens to the
// spreads, and what was wanted happens soon after. The answers are given side by side, each to an operator of its own;
// another one answers the webhooks.
func TestARefusedOperatorIsQuiet(t *testing.T) {
	c, _ := admitting(t)
	plays := map[string]*refused{}
	for name, err := range faults.Refusals() {
		plays[name] = givenRefused(t, c, err)
	}
	for name := range plays {
		plays[name].begin(t)
	}
	for note, over := "", false; !over; note += "." {
		over = true
		for name := range plays {
			if plays[name].server.Over() {
				continue
			}
			over = false
			for _, s := range plays[name].spreads {
				touch(t, c, s.DeepCopy(), fmt.Sprintf(`{"metadata":{"annotations":{"note":%q}}}`, note))
			}
		}
		<-time.After(100 * time.Millisecond)
	}
	for name := range plays {
		t.Run(name, func(t *testing.T) {
			plays[name].assertDone(t, c)
			assert.Equal(t, 5, plays[name].server.AssertQuiet(t, 2), "two spreads, a pod to mark, a pod to delete, and the namespace")
		})
	}
}

// refused is a namespace in which each kind of write is wanted, and the server that refuses them.
type refused struct {
	namespace   string
	server      *faults.Refusing
	spreads     []*v1beta1.WorkloadSpread
	loose, late *corev1.Pod
}

// givenRefused makes a running pod that is to be marked, a pod that is to be deleted as its subset is closed, and takes
// the label of the namespace away.
func givenRefused(t *testing.T, c client.Client, err *apierrors.StatusError) *refused {
	t.Helper()
	r := &refused{namespace: env.Namespace(t)}
	r.server = &faults.Refusing{Err: err, For: 2 * time.Second, Of: func(q *http.Request) bool {
		_, path, mine := strings.Cut(q.URL.Path, "/namespaces/"+r.namespace)
		return faults.IsWrite(q) && mine && (path == "" || strings.HasPrefix(path, "/pods/") || strings.HasPrefix(path, "/workloadspreads/"))
	}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: r.namespace, Labels: map[string]string{"zone": "a"}}}
	require.NoError(t, c.Create(t.Context(), node))
	node.Spec.Taints = nil // the API server marks new nodes as not ready
	require.NoError(t, c.Update(t.Context(), node))

	r.loose = r.givenPod(t, c, "web", func(pod *corev1.Pod) { pod.Spec.NodeName = node.Name })
	r.late = r.givenPod(t, c, "late", func(pod *corev1.Pod) {
		pod.Annotations = map[string]string{v1beta1.MatchedAnnotation: `{"name":"late","subset":"a"}`}
	})
	since := metav1.NewTime(time.Now().Add(-time.Hour))
	r.late.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, LastTransitionTime: since,
	}}
	require.NoError(t, c.Status().Update(t.Context(), r.late))
	r.givenSpread(t, c, "web")
	late := r.givenSpread(t, c, "late")
	closed := []v1beta1.SubsetStatus{{Name: "a", Replicas: 1, Conditions: []metav1.Condition{{
		Type: v1beta1.SubsetSchedulable, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonPodUnschedulable, LastTransitionTime: since,
	}}}, {Name: "b", MissingReplicas: subsets.Unlimited}}
	late.Status.VersionedSubsetStatuses = map[string][]v1beta1.SubsetStatus{v1beta1.VersionIgnored: closed}
	require.NoError(t, c.Status().Update(t.Context(), late))
	touch(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.namespace}}, `{"metadata":{"labels":{"`+v1beta1.NamespaceLabel+`":null}}}`)
	return r
}

// givenPod makes a pod of a ReplicaSet of its own.
func (r *refused) givenPod(t *testing.T, c client.Client, name string, change func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	owner := newReplicaSet(r.namespace, 1)
	owner.Name = name
	require.NoError(t, c.Create(t.Context(), owner))
	pod := podOf(owner)
	change(pod)
	require.NoError(t, c.Create(t.Context(), pod))
	return pod
}

// givenSpread spreads the ReplicaSet of the name; pods that cannot be scheduled in zone a move on.
func (r *refused) givenSpread(t *testing.T, c client.Client, name string) *v1beta1.WorkloadSpread {
	t.Helper()
	s := newSpread(r.namespace, intstr.FromInt32(1))
	s.Name, s.Spec.TargetReference.Name = name, name
	s.Spec.ScheduleStrategy = v1beta1.WorkloadSpreadScheduleStrategy{
		Type: v1beta1.AdaptiveStrategy, Adaptive: &v1beta1.AdaptiveSettings{RescheduleCriticalSeconds: new(int32(1))},
	}
	require.NoError(t, c.Create(t.Context(), s))
	r.spreads = append(r.spreads, s)
	return s
}

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
		pod, ns := &corev1.Pod{}, &corev1.Namespace{}
		require.NoError(check, c.Get(t.Context(), client.ObjectKeyFromObject(r.loose), pod))
		assert.Equal(check, "a", subsetOf(pod))
		assert.True(check, apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(r.late), pod)))
		require.NoError(check, c.Get(t.Context(), types.NamespacedName{Name: r.namespace}, ns))
		assert.Equal(check, "true", ns.Labels[v1beta1.NamespaceLabel])
		for _, s := range r.spreads {
			require.NoError(check, c.Get(t.Context(), client.ObjectKeyFromObject(s), s))
			assert.Equal(check, s.Generation, s.Status.ObservedGeneration)
			require.Len(check, s.Status.SubsetStatuses, 2)
			assert.EqualValues(check, map[string]int{"web": 1, "late": 0}[s.Name], s.Status.SubsetStatuses[0].Replicas)
		}
	})
}

// touch patches an object in a way that concerns nobody else.
func touch(t *testing.T, c client.Client, o client.Object, patch string) {
	t.Helper()
	require.NoError(t, c.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))))
}
