package setup

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/testing/await"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/cover"
)

// A pod is one of a budget's pods if and only if the budget is one of the pod's budgets.
func TestBudgetsAndPodsAgree(t *testing.T) {
	environment, _ := serveOne(t)
	targets, err := newTargets(environment, "agree", 0)
	require.NoError(t, err)
	mgr := environment.Manager
	reader := cover.Reader{Cache: fastclient.NewReader(mgr.GetCache(), mgr.GetScheme(), fastclient.Options{}), Targets: targets}

	a := givenApp(t, env.Client(t), 1)
	set, ofThis := a.givenSet(t, "web", 1)
	gone, ofGone := a.givenSet(t, "gone", 1)
	require.NoError(t, a.Delete(t.Context(), gone))
	fleet := givenFleet(t, a, 1, "app=web")
	for _, change := range []func(*corev1.Pod){
		ofThis, ofGone,
		func(pod *corev1.Pod) { ofThis(pod); pod.OwnerReferences[0].UID = "former" },
		func(pod *corev1.Pod) { pod.OwnerReferences = nil },
		func(pod *corev1.Pod) { pod.Labels = map[string]string{"app": "api"} }, // of the Deployment, whose scale does not select it
		func(pod *corev1.Pod) { ofThis(pod); pod.Labels = nil },
	} {
		a.addPod(t, change)
	}
	deployment := newBudget(a.namespace)
	bySet, byLabels, byFleet := deployment.DeepCopy(), deployment.DeepCopy(), deployment.DeepCopy()
	ofSet(bySet)
	ofFleet(byFleet)
	byLabels.Spec.TargetReference, byLabels.Spec.Selector = nil, &metav1.LabelSelector{MatchLabels: labels}
	all := map[string]*v1beta1.PodUnavailableBudget{"deployment": deployment, set.Name: bySet, "labels": byLabels, fleet.GetName(): byFleet}
	for name, b := range all {
		b.Name = name
		require.NoError(t, a.Create(t.Context(), b))
	}
	want := map[string][]string{"deployment": {"web-0"}, "web": {"web-1", "web-6"}, "labels": {"web-0", "web-1", "web-4"}, "fleet": {"web-0", "web-1", "web-4"}}
	await.Until(t, func(check *assert.CollectT) {
		has, isOf := map[string][]string{}, map[string][]string{}
		for name, b := range all {
			pods, _, err := reader.Pods(t.Context(), b)
			require.NoError(check, err)
			for _, pod := range pods {
				has[name] = append(has[name], pod.Name)
			}
		}
		for _, pod := range a.pods {
			require.NoError(check, a.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
			budgets, err := reader.Budgets(t.Context(), pod)
			require.NoError(check, err)
			for _, b := range budgets {
				isOf[b.Name] = append(isOf[b.Name], pod.Name)
			}
		}
		for name := range all {
			assert.ElementsMatch(check, want[name], has[name], name)
			assert.ElementsMatch(check, want[name], isOf[name], name)
		}
	})
	require.NoError(t, a.Delete(t.Context(), byFleet), "shipped roles do not know the kind")
}
