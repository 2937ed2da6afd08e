package setup

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/testing/await"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/cover"
	"github.com/flotilla-project/flotilla/budget/internal/featuregates"
)

// BenchmarkChosenPods measures what it takes to find out, of all pods that the scale of a target selects, which budgets
// cover them, among many budgets: for the condition of one budget, and for the marks, pod by pod; with and without memory of
// who owns pods. The time for each pod stays the same, however many there are.
func BenchmarkChosenPods(b *testing.B) {
	const budgets = 50
	env.Need(b)
	s, environment := answering(b, features.Defaults(featuregates.All()...))
	require.NoError(b, s.setup(b.Context(), environment))
	targets, err := newTargets(environment, "benchmark", 0)
	require.NoError(b, err)
	env.Start(b, environment.Manager)
	for _, n := range []int{200, 800} {
		a := givenApp(b, env.Client(b), 0)
		givenFleet(b, a, int64(n), "app=web")
		a.addPods(b, n, func(pod *corev1.Pod) { pod.OwnerReferences = nil })
		mine := newBudget(a.namespace)
		ofFleet(mine)
		require.NoError(b, a.Create(b.Context(), mine))
		for i := range budgets {
			other := newBudget(a.namespace)
			other.Name, other.Spec.TargetReference = fmt.Sprint("other-", i), nil
			other.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": other.Name}}
			require.NoError(b, a.Create(b.Context(), other))
		}
		reader := cover.Reader{
			Cache:   fastclient.NewReader(environment.Manager.GetCache(), environment.Manager.GetScheme(), fastclient.Options{}),
			Targets: targets,
		}
		var pods []*corev1.Pod
		await.Until(b, func(check *assert.CollectT) {
			all, err := fastclient.All[v1beta1.PodUnavailableBudget](b.Context(), reader.Cache, a.namespace)
			require.NoError(check, err)
			assert.Len(check, all, budgets+1)
			pods, _, err = reader.Pods(b.Context(), mine)
			require.NoError(check, err)
			assert.Len(check, pods, n)
		})
		b.Run(fmt.Sprint("condition/", n), func(b *testing.B) {
			for b.Loop() {
				other, _, err := reader.Overlap(b.Context(), mine, pods)
				require.NoError(b, err)
				require.Empty(b, other)
			}
			perPod(b, n)
		})
		for name, owning := range map[string]*cover.Owning{"marks": cover.NewOwning(environment.Clock), "marks-without-memory": nil} {
			b.Run(fmt.Sprint(name, "/", n), func(b *testing.B) {
				reader.Owning = owning
				for b.Loop() {
					for _, pod := range pods {
						found, err := reader.Budgets(b.Context(), pod)
						require.NoError(b, err)
						require.Len(b, found, 1)
					}
				}
				perPod(b, n)
			})
		}
	}
}

func perPod(b *testing.B, n int) {
	b.Helper()
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(n), "us/pod")
}
