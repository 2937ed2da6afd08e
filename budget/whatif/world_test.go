package whatif_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/nodes"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/whatif"
)

// app is ReplicaSet web with pods that are ready, and a budget.
type app struct {
	*nodes.World

	t       *testing.T
	budgets *whatif.Budgets
}

// start plays a world of the objects.
func start(t *testing.T, objects ...action.Object) *app {
	t.Helper()
	b := whatif.New()
	w := nodes.New(cluster.Options{Seed: 1, Calm: true, DetectMutation: true, Admission: b.Admit}, objects...)
	b.Watch(w.Cluster())
	t.Cleanup(func() {
		assert.Nil(t, w.Mutated())
		assert.Empty(t, w.Violations())
	})
	return &app{w, t, b}
}

func replicaSet(replicas int32) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: "web", UID: "of-web"},
		Spec:       appsv1.ReplicaSetSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	}
}

// pods returns pods web-0 and so on of the owner. They are ready, and made for updates in place.
func pods(n int, owner action.Object, options ...gen.PodOption) []action.Object {
	all := make([]action.Object, n)
	for i := range n {
		all[i] = gen.Pod(fmt.Sprint("web-", i), append([]gen.PodOption{
			gen.OnNode("node-0"), gen.Label("app", "web"), gen.ReadinessGate(contract.InPlaceUpdateReady), gen.OwnedBy(owner), gen.Ready(gen.Epoch()),
			gen.Condition(contract.InPlaceUpdateReady, corev1.ConditionTrue, gen.Epoch()),
		}, options...)...)
	}
	return all
}

// startWeb plays ReplicaSet web with so many pods, and a budget.
func startWeb(t *testing.T, n int32, limit func(*v1beta1.PodUnavailableBudgetSpec)) *app {
	t.Helper()
	set := replicaSet(n)
	return start(t, append(pods(int(n), set), set, budget(limit))...)
}

// budget returns a budget of the pods of ReplicaSet web.
func budget(limit func(*v1beta1.PodUnavailableBudgetSpec)) *v1beta1.PodUnavailableBudget {
	b := &v1beta1.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: "web"}}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	limit(&b.Spec)
	return b
}

func maxUnavailable(n intstr.IntOrString) func(*v1beta1.PodUnavailableBudgetSpec) {
	return func(s *v1beta1.PodUnavailableBudgetSpec) { s.MaxUnavailable = &n }
}

func minAvailable(n intstr.IntOrString) func(*v1beta1.PodUnavailableBudgetSpec) {
	return func(s *v1beta1.PodUnavailableBudgetSpec) { s.MinAvailable = &n }
}

func (a *app) pod(name string) *corev1.Pod {
	a.t.Helper()
	pod := cluster.Get[*corev1.Pod](a.View(nil), gen.Namespace, name)
	require.NotNil(a.t, pod, name)
	return pod
}

func (a *app) remove(name string) error { return a.Delete(cluster.UserActor, a.pod(name)) }

func (a *app) change(name, subresource string, edit func(*corev1.Pod)) error {
	return cluster.Change(a, cluster.UserActor, subresource, a.pod(name), edit)
}

func setImage(pod *corev1.Pod) { pod.Spec.Containers[0].Image = "app:2" }

// replace makes a new pod of ReplicaSet web.
func (a *app) replace(name string) {
	a.t.Helper()
	pod := pods(1, replicaSet(0))[0].(*corev1.Pod)
	pod.Name, pod.Spec.NodeName, pod.Spec.ReadinessGates = name, "", nil
	_, err := a.Create(cluster.OperatorActor, pod)
	require.NoError(a.t, err)
}

// state returns the state of the only budget.
func (a *app) state() whatif.State {
	a.t.Helper()
	states := a.budgets.States()
	require.Len(a.t, states, 1)
	return states[0]
}

// assertRefused requires the answer of a budget.
func (a *app) assertRefused(err error) {
	a.t.Helper()
	require.Error(a.t, err)
	assert.True(a.t, apierrors.IsForbidden(err), err.Error())
	assert.True(a.t, apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause), err.Error())
}
