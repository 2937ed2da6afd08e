package plan

import (
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flotilla-project/flotilla/core/pods/inplace"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/scenarios"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// The warning about an edit says what the rollout does then.
func TestEditsDoWhatTheirWarningSays(t *testing.T) {
	t.Parallel()
	scenarios.CheckForecasts(t, 40, func(t testing.TB, seed uint64) scenarios.Forecast {
		t.Helper()
		rng := rand.New(rand.NewPCG(seed, 3))
		options := []setOption{readsConfig, func(s *v1beta1.CloneSet) {
			s.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}
			if rng.IntN(2) == 0 {
				s.Spec.Template.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.RestartContainer}}
			}
		}}
		options = append(options, policy([]v1beta1.PodUpdatePolicy{v1beta1.InPlaceIfPossible, v1beta1.InPlaceIfPossible, v1beta1.ReCreate}[rng.IntN(3)]))
		options = append(options, maxUnavailable([]string{"1", "50%", "100%"}[rng.IntN(3)]), maxSurge([]string{"0", "1"}[rng.IntN(2)]))
		options = append(options, partition([]string{"0", "0", "2", "30%", "100%"}[rng.IntN(5)]))
		if rng.IntN(6) == 0 {
			options = append(options, paused())
		}
		w, p := play(t, cluster.Options{Seed: seed, Calm: true}, 4, options...)
		return scenarios.Forecast{World: w, Planner: p, Edit: func(change func(*corev1.PodTemplateSpec)) []string {
			old := present(w).DeepCopy()
			edit(w, func(s *v1beta1.CloneSet) { change(&s.Spec.Template) })
			return Forecast(old, present(w), inplace.Options{EnvFromMetadata: true, Resize: true}).Warnings()
		}}
	})
}
