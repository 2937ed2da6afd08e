package podstate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/testing/gen"
)

// Gates were opened at second 0 and 100; now it is second 103.
func TestAPodIsReadyInAMomentOnceItsLastGateIsOpen(t *testing.T) {
	for name, c := range map[string]struct {
		with []gen.PodOption
		want time.Duration
	}{
		"its last gate was opened a moment ago": {nil, 7 * time.Second},
		"it is ready":                           {[]gen.PodOption{gen.Ready(second(102))}, 0},
		"a container is not ready":              {[]gen.PodOption{gen.Condition(corev1.ContainersReady, corev1.ConditionFalse, second(90))}, 0},
		"another gate is closed":                {[]gen.PodOption{gen.ReadinessGate("load-balancer")}, 0},
		"it is being deleted":                   {[]gen.PodOption{gen.Terminating()}, 0},
		"its kubelet has had its time":          {[]gen.PodOption{gen.Condition(contract.InPlaceUpdateReady, corev1.ConditionTrue, second(93))}, 0},
		"by another clock":                      {[]gen.PodOption{gen.Condition(contract.InPlaceUpdateReady, corev1.ConditionTrue, second(3600))}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			pod := gen.Pod("web-1", append([]gen.PodOption{
				gen.ReadinessGate(contract.KruisePodReady), gen.Condition(contract.KruisePodReady, corev1.ConditionTrue, second(0)),
				gen.ReadinessGate(contract.InPlaceUpdateReady), gen.Condition(contract.InPlaceUpdateReady, corev1.ConditionTrue, second(100)),
				gen.NotReady(second(50)), gen.Condition(corev1.ContainersReady, corev1.ConditionTrue, second(90)),
			}, c.with...)...)
			assert.Equal(t, c.want, podstate.ReadyIn(pod, second(103)))
		})
	}
}
