package setup

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/flotilla-project/flotilla/core/operator/admission"
	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/operator/manager"
	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
	"github.com/flotilla-project/flotilla/core/testing/testenv/operators"

	"github.com/flotilla-project/flotilla/budget/api/v1alpha1"
	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/featuregates"
)

var env testenv.Environment

func TestMain(m *testing.M) {
	env.Run(m, testenv.Options{
		CRDs:     []string{"../config/crd/podunavailablebudgets.yaml", "testdata/fleets.yaml"},
		Scheme:   testenv.Scheme(v1alpha1.AddToScheme, v1beta1.AddToScheme),
		Webhooks: envtest.WebhookInstallOptions{Paths: []string{"../config/webhook"}},
	})
}

// serve runs the operator with these feature gates until the test ends, behind the shipped webhook configurations.
func serve(t testing.TB, gates features.Set) client.Client {
	t.Helper()
	s, environment := answering(t, gates)
	require.NoError(t, s.setup(t.Context(), environment))
	env.Start(t, environment.Manager)
	return env.Client(t)
}

// serveOne is serve that also returns the operator and what answers its webhooks, to be asked by the test itself.
func serveOne(t testing.TB) (*manager.Environment, manager.Webhooks) {
	t.Helper()
	s, environment := replica(t, env, "", features.Defaults(featuregates.All()...))
	hooks, err := s.webhooks(t.Context(), environment)
	require.NoError(t, err)
	hooks.Register(environment.Manager.GetWebhookServer())
	require.NoError(t, s.setup(t.Context(), environment))
	env.Start(t, environment.Manager)
	return environment, hooks
}

// servedBy is serve with so many replicas that answer admission in turn, and that reach the server in their own way; only
// the first has controllers.
func servedBy(t testing.TB, replicas int, over testenv.Environment) client.Client {
	t.Helper()
	var mutating, validating [][]admission.Endpoint
	var leading *manager.Environment
	var all manager.Webhooks
	for i := range replicas {
		s, environment := replica(t, over, "", features.Defaults(featuregates.All()...))
		hooks, err := s.webhooks(t.Context(), environment)
		require.NoError(t, err)
		mutating, validating = append(mutating, hooks.Mutating), append(validating, hooks.Validating)
		if i == 0 {
			leading, all = environment, hooks
			require.NoError(t, s.setup(t.Context(), environment))
		} else {
			env.Start(t, environment.Manager)
		}
	}
	all.Mutating, all.Validating = operators.InTurn(mutating...), operators.InTurn(validating...)
	all.Register(leading.Manager.GetWebhookServer())
	env.Start(t, leading.Manager)
	return env.Client(t)
}

// answering answers the webhooks until the test ends, once the manager of the environment has started.
func answering(t testing.TB, gates features.Set) (*settings, *manager.Environment) {
	t.Helper()
	s, environment := replica(t, env, "", gates)
	all, err := s.webhooks(t.Context(), environment)
	require.NoError(t, err)
	all.Register(environment.Manager.GetWebhookServer())
	return s, environment
}

// replica is an operator that reaches the server in its own way, for one namespace or, when it is empty, for all.
func replica(t testing.TB, over testenv.Environment, namespace string, gates features.Set) (*settings, *manager.Environment) {
	t.Helper()
	s := newSettings()
	mgr := over.Manager(t, func(o *ctrlmanager.Options) { o.Cache = s.cache(namespace) })
	return s, &manager.Environment{
		Feature: "budget", Manager: mgr, Clock: clock.RealClock{}, Log: mgr.GetLogger(),
		Options: manager.Options{FeatureGates: gates, Namespace: namespace},
	}
}

// answerWebhooks answers the webhooks, and does nothing else, until the test ends.
func answerWebhooks(t *testing.T) {
	t.Helper()
	_, environment := answering(t, features.Defaults(featuregates.All()...))
	env.Start(t, environment.Manager)
}

// app is a Deployment with pods that a test makes, as no controllers run.
type app struct {
	client.Client
	namespace string
	rs        *appsv1.ReplicaSet
	pods      []*corev1.Pod
}

var labels = map[string]string{"app": "web"}

// givenApp makes a Deployment with that many ready pods.
func givenApp(t testing.TB, c client.Client, replicas int) *app {
	t.Helper()
	a := &app{Client: c, namespace: env.Namespace(t)}
	env.Share(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}})
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec()}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	n := int32(replicas) //nolint:gosec // it is small
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "web"},
		Spec:       appsv1.DeploymentSpec{Replicas: &n, Selector: selector, Template: template},
	}
	require.NoError(t, c.Create(t.Context(), deployment))
	a.rs = &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "web-5d8f", OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(deployment, appsv1.SchemeGroupVersion.WithKind("Deployment")),
		}},
		Spec: appsv1.ReplicaSetSpec{Replicas: &n, Selector: selector, Template: template},
	}
	require.NoError(t, c.Create(t.Context(), a.rs))
	for range replicas {
		a.addPod(t)
	}
	return a
}

func spec() corev1.PodSpec {
	return corev1.PodSpec{
		NodeName:       "node", // so that deletions take their time
		Containers:     []corev1.Container{{Name: "main", Image: "app:1"}},
		ReadinessGates: []corev1.PodReadinessGate{{ConditionType: "InPlaceUpdateReady"}},
	}
}

func (a *app) deployment(t testing.TB) *appsv1.Deployment {
	t.Helper()
	d := &appsv1.Deployment{}
	require.NoError(t, a.Get(t.Context(), client.ObjectKey{Namespace: a.namespace, Name: "web"}, d))
	return d
}

// newPod returns a pod of the Deployment.
func (a *app) newPod(number int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: a.namespace, Name: fmt.Sprintf("web-%d", number), Labels: labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(a.rs, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))},
		},
		Spec: spec(),
	}
}

// addPod makes a pod of the Deployment, and has it ready.
func (a *app) addPod(t testing.TB, changes ...func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	pod := a.newPod(len(a.pods))
	for _, change := range changes {
		change(pod)
	}
	require.NoError(t, a.Create(t.Context(), pod))
	a.setReady(t, pod, "True")
	a.pods = append(a.pods, pod)
	return pod
}

func (a *app) setReady(t testing.TB, pod *corev1.Pod, ready corev1.ConditionStatus) {
	t.Helper()
	before := client.MergeFrom(pod.DeepCopy())
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodReady, Status: ready}, {Type: corev1.ContainersReady, Status: ready}, {Type: "InPlaceUpdateReady", Status: "True"},
	}
	require.NoError(t, a.Status().Patch(t.Context(), pod, before))
}

// newBudget returns a budget for the Deployment of which one pod may be unavailable.
func newBudget(namespace string) *v1beta1.PodUnavailableBudget {
	b := &v1beta1.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	b.Spec.TargetReference = &v1beta1.TargetReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	b.Spec.MaxUnavailable = new(intstr.FromInt32(1))
	return b
}

// older returns a budget of version v1alpha1 that selects pods.
func older(name string) *v1alpha1.PodUnavailableBudget {
	return &v1alpha1.PodUnavailableBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: v1alpha1.PodUnavailableBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels}, MaxUnavailable: new(intstr.FromString("20%")),
		},
	}
}

// budget makes a budget for the Deployment, and waits until it counts and the pods are marked.
func (a *app) budget(t *testing.T, changes ...func(*v1beta1.PodUnavailableBudget)) *v1beta1.PodUnavailableBudget {
	t.Helper()
	b := newBudget(a.namespace)
	for _, change := range changes {
		change(b)
	}
	require.NoError(t, a.Create(t.Context(), b))
	await.Until(t, func(check *assert.CollectT) {
		require.NoError(check, a.Get(t.Context(), client.ObjectKeyFromObject(b), b))
		assert.Equal(check, b.Generation, b.Status.ObservedGeneration)
		assert.EqualValues(check, len(a.pods), b.Status.CurrentAvailable)
		var ns corev1.Namespace
		require.NoError(check, a.Get(t.Context(), client.ObjectKey{Name: a.namespace}, &ns))
		assert.Equal(check, "true", ns.Labels[v1beta1.NamespaceLabel])
		for _, pod := range a.pods {
			require.NoError(check, a.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
			assert.Equal(check, b.Name, pod.Annotations[v1beta1.RelatedAnnotation])
			assert.Equal(check, b.Name, pod.Annotations[v1beta1.LegacyRelatedAnnotation])
		}
	})
	a.guarded(t, a.pods[0])
	return b
}

// guarded waits until the API server has noticed the mark of the namespace: then it calls the webhooks. These must have
// seen the budget's numbers.
func (a *app) guarded(t testing.TB, pod *corev1.Pod) {
	t.Helper()
	await.Until(t, func(check *assert.CollectT) {
		probe := pod.DeepCopy()
		require.Error(check, a.Patch(t.Context(), probe, client.RawPatch(types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"`+v1beta1.RelatedAnnotation+`":"other"}}}`)), client.DryRunAll))
		if err := a.Delete(t.Context(), pod.DeepCopy(), client.DryRunAll); err != nil {
			assert.NotContains(check, err.Error(), "status is being updated", "the webhook's cache lags")
		}
	})
}

// numbers returns total, desired, current and allowed.
func (a *app) numbers(t require.TestingT, b *v1beta1.PodUnavailableBudget) [4]int32 {
	require.NoError(t, a.Get(context.Background(), client.ObjectKeyFromObject(b), b))
	return [4]int32{b.Status.TotalReplicas, b.Status.DesiredAvailable, b.Status.CurrentAvailable, b.Status.UnavailableAllowed}
}

func (a *app) evict(t testing.TB, pod *corev1.Pod, options ...client.SubResourceCreateOption) error {
	t.Helper()
	return a.SubResource("eviction").Create(t.Context(), pod, &policyv1.Eviction{}, options...)
}

func (a *app) patch(t testing.TB, pod *corev1.Pod, patch string) error {
	t.Helper()
	return a.Patch(t.Context(), pod.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, []byte(patch)))
}

const newImage = `{"spec":{"containers":[{"name":"main","image":"app:2"}]}}`
