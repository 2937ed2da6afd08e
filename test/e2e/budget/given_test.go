package budget

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/story"
)

const app = "flotilla/demo-app:"

// labels are those of all pods of the stories.
func labels() map[string]string { return map[string]string{"app": "web"} }

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{
		Containers:                    []corev1.Container{{Name: "main", Image: app + "v1"}},
		TerminationGracePeriodSeconds: new(int64(5)),
	}
}

func newPod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: labels()}, Spec: podSpec()}
}

// givenPods creates pods without a workload, so that nothing replaces them, and waits until they are ready.
func givenPods(t *testing.T, namespace string, names ...string) []*corev1.Pod {
	t.Helper()
	var pods []*corev1.Pod
	for _, name := range names {
		pods = append(pods, newPod(namespace, name))
		require.NoError(t, world.Client.Create(t.Context(), pods[len(pods)-1]))
	}
	for _, o := range pods {
		isReady(t, o)
	}
	return pods
}

func isReady(t *testing.T, o *corev1.Pod) {
	t.Helper()
	story.Reaches(t, world, o, "ready", func(o *corev1.Pod) error {
		return story.Want(story.IsReady(o), "status is %+v", o.Status.ContainerStatuses)
	})
}

// storyLabel is the label of a Deployment's pods whose value tells them from those of other stories.
const storyLabel = "example.io/story"

// givenDeployment creates Deployment "web" and waits until its pods are ready.
func givenDeployment(t *testing.T, namespace string, replicas int32) *appsv1.Deployment {
	t.Helper()
	all := labels()
	all[storyLabel] = namespace
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels()},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: all}, Spec: podSpec()},
		},
	}
	require.NoError(t, world.Client.Create(t.Context(), d))
	story.Reaches(t, world, d, "all its pods", func(d *appsv1.Deployment) error {
		return story.Want(d.Status.AvailableReplicas == replicas, "status is %+v", d.Status)
	})
	return d
}

// atLeast returns a budget of the stories' pods, n of which must stay available.
func atLeast(namespace string, n int32) *v1beta1.PodUnavailableBudget {
	return &v1beta1.PodUnavailableBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace},
		Spec: v1beta1.PodUnavailableBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels()}, MinAvailable: new(intstr.FromInt32(n)),
		},
	}
}

// oneOf returns a budget that lets one pod of the workload be unavailable.
func oneOf(namespace, apiVersion, kind string) *v1beta1.PodUnavailableBudget {
	return &v1beta1.PodUnavailableBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace},
		Spec: v1beta1.PodUnavailableBudgetSpec{
			TargetReference: &v1beta1.TargetReference{APIVersion: apiVersion, Kind: kind, Name: "web"},
			MaxUnavailable:  new(intstr.FromInt32(1)),
		},
	}
}

// givenBudget creates the budget and waits until it guards this many pods.
func givenBudget(t *testing.T, b *v1beta1.PodUnavailableBudget, pods int32) {
	t.Helper()
	require.NoError(t, world.Client.Create(t.Context(), b))
	guards(t, b, pods)
}

// guards waits until the budget counts this many available pods and no grant, and the API server asks about all of them.
func guards(t *testing.T, b *v1beta1.PodUnavailableBudget, pods int32) {
	t.Helper()
	story.Reaches(t, world, b, "its numbers", func(b *v1beta1.PodUnavailableBudget) error {
		s := b.Status
		settled := s.ObservedGeneration == b.Generation && s.CurrentAvailable == pods && len(s.DisruptedPods)+len(s.UnavailablePods) == 0
		return story.Want(settled, "status is %+v", s)
	})
	story.Eventually(t, "the marks of what is guarded", func(ctx context.Context) error {
		ns := &corev1.Namespace{}
		if err := world.Client.Get(ctx, client.ObjectKey{Name: b.Namespace}, ns); err != nil {
			return err
		}
		return story.Want(ns.Labels[v1beta1.NamespaceLabel] != "" && marked(t, b) == int(pods), "%d pods are marked, labels are %v", marked(t, b), ns.Labels)
	})
}

// marked returns how many pods carry the mark of the budget.
func marked(t *testing.T, b *v1beta1.PodUnavailableBudget) int {
	t.Helper()
	n := 0
	for _, o := range story.Active(world.Pods(t, b.Namespace)) {
		if o.Annotations[v1beta1.RelatedAnnotation] == b.Name {
			n++
		}
	}
	return n
}

// newBuiltIn returns the built-in StatefulSet "web", whose pods come at once.
func newBuiltIn(namespace string, replicas int32) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, PodManagementPolicy: appsv1.ParallelPodManagement,
			Selector: &metav1.LabelSelector{MatchLabels: labels()},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels()}, Spec: podSpec()},
		},
	}
}

// dryRun returns an eviction that leaves the pod as it is.
func dryRun() *policyv1.Eviction {
	return &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}}
}

func evict(ctx context.Context, o *corev1.Pod) error {
	return world.Client.SubResource("eviction").Create(ctx, o, &policyv1.Eviction{})
}
