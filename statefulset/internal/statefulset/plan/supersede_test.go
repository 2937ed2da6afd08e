package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// What a grace period is for is written at its end, unless the template has changed since.
func TestASupersededGracePeriodWritesNothing(t *testing.T) {
	for name, wanted := range map[string]string{"back": "app:1", "on": "app:3"} {
		t.Run(name, func(t *testing.T) {
			w, p := play(t, cluster.Options{Seed: 5}, 2, policy(v1beta1.InPlaceIfPossible), grace(30))
			simulate.Settle(t, w, p, 500)
			w.OnEvent(func(w *simulate.World, e cluster.Event) {
				if pod, ok := e.Object.(*corev1.Pod); ok && pod.Spec.Containers[0].Image == "app:withdrawn" {
					w.Violate("pod %s gets an image that was withdrawn", pod.Name)
				}
			})
			edit(w, image("app:withdrawn"))
			op := simulate.NewOperator(w, p, simulate.Faults{})
			inGrace := func() bool {
				for _, pod := range activePods(w) {
					if pod.Annotations[contract.InPlaceUpdateGraceAnnotation] != "" {
						return true
					}
				}
				return false
			}
			for range 20 {
				op.Pass()
				w.Advance(time.Second)
			}
			require.True(t, inGrace())
			edit(w, image(wanted))
			simulate.Settle(t, w, p, 1000)
			assert.Len(t, w.View(nil).Available("set-uid", 0), 2)
			for _, pod := range activePods(w) {
				assert.Equal(t, wanted, pod.Spec.Containers[0].Image)
				restarts := int32(1)
				if wanted == "app:1" {
					restarts = 0
				}
				assert.Equal(t, restarts, pod.Status.ContainerStatuses[0].RestartCount)
			}
		})
	}
}
