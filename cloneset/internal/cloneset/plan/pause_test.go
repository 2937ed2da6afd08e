package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// A pause ends what has not begun: a pod that its hook lets go of serves on, whatever the update was to do with it.
func TestAPauseTakesBackPodsWhoseHookHasLetGo(t *testing.T) {
	for _, how := range []v1beta1.PodUpdatePolicy{v1beta1.InPlaceIfPossible, v1beta1.ReCreate} {
		t.Run(string(how), func(t *testing.T) {
			w, p := play(t, cluster.Options{Seed: 5}, 3, policy(how), hooked(), hookTaken(), maxUnavailable("1"))
			simulate.Settle(t, w, p, 500)
			before := identities(w)
			edit(w, image("app:2"))
			simulate.Settle(t, w, p, 500)
			edit(w, paused())
			simulate.Settle(t, w, p, 500)
			require.Len(t, w.View(nil).Available("set-uid", 0), 2, "the hook holds one")
			for _, pod := range activePods(w) {
				if state := pod.Labels[contract.LifecycleStateLabel]; state != contract.LifecycleNormal {
					require.NoError(t, cluster.Change(w, cluster.UserActor, "", pod, func(o *corev1.Pod) { delete(o.Labels, simulate.HookLabel) }))
				}
			}
			simulate.Settle(t, w, p, 500)
			assert.Len(t, w.View(nil).Available("set-uid", 0), 3)
			assert.Equal(t, before, identities(w))
			for _, pod := range activePods(w) {
				assert.Equal(t, "app:1", pod.Spec.Containers[0].Image)
				assert.NotContains(t, pod.Labels, contract.SpecifiedDeleteLabel)
			}
			w.AnswerHooks(time.Second, func() *workload.Lifecycle { return present(w).Spec.Lifecycle })
			edit(w, resumed())
			simulate.Settle(t, w, p, 1000)
			arrived(t, w)
		})
	}
}
