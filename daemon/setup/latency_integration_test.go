package setup

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/testing/load"

	"github.com/flotilla-project/flotilla/daemon/internal/featuregates"
)

// BenchmarkSteadyCreations measures how long each of 50 and of 200 creations a second takes, for five seconds: of pods whose
// containers have an order, which the webhook gives barriers; beside them, in turn, of pods for which no webhook is called, and
// for which one is called that allows all.
func BenchmarkSteadyCreations(b *testing.B) {
	env.Need(b)
	server := serve(b, features.Defaults(featuregates.All()...))
	for _, perSecond := range []int{50, 200} {
		b.Run(fmt.Sprintf("%d-a-second", perSecond), func(b *testing.B) {
			const seconds = 5
			ways := []load.Way{{Name: "bare"}, {Name: "no-op"}, {Name: "order"}}
			for b.Loop() {
				pods := make([][]*corev1.Pod, len(ways))
				for i := range ways {
					space := env.Namespace(b)
					if ways[i].Name == "no-op" {
						env.AllowPods(b, space)
					}
					first := prioritized(space, "first") // the API server is slow with the first pod of a new namespace
					require.NoError(b, server.Create(b.Context(), first))
					pods[i] = make([]*corev1.Pod, seconds*perSecond)
					ways[i].Request = func(n int) error {
						pod := prioritized(space, fmt.Sprint("web-", n))
						if ways[i].Name != "order" {
							pod.Spec.Containers[1].Env = nil
						}
						pods[i][n] = pod
						return server.Create(b.Context(), pod)
					}
				}
				load.InTurn(b, perSecond, seconds, ways)
				for i := range ways {
					for _, pod := range pods[i] {
						require.Equal(b, ways[i].Name == "order", barriers(pod) == 2)
					}
				}
			}
			load.Compare(b, ways)
		})
	}
}
