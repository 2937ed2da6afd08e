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

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// A new pod that waits for its hook preNormal is updated in place, and goes on waiting.
func TestAnEditDoesNotPassByPreNormal(t *testing.T) {
	for name, change := range map[string]setOption{
		"image":      image("app:2"),
		"label":      func(s *v1beta1.StatefulSet) { s.Spec.Template.Labels["version"] = "2" },
		"annotation": func(s *v1beta1.StatefulSet) { s.Spec.Template.Annotations = map[string]string{"a": "b"} },
	} {
		t.Run(name, func(t *testing.T) {
			w, p := play(t, cluster.Options{Seed: 5}, 2, inOrder(), policy(v1beta1.InPlaceIfPossible), preNormalHook())
			simulate.Settle(t, w, p, 500)
			edit(w, change)
			simulate.Settle(t, w, p, 500)
			require.NotEmpty(t, activePods(w))
			for _, pod := range activePods(w) {
				assert.Equal(t, contract.LifecyclePreparingNormal, pod.Labels[contract.LifecycleStateLabel])
			}
			assert.Empty(t, w.View(nil).Available("set-uid", 0))
			w.AnswerHooks(time.Second, func() *workload.Lifecycle { return present(w).Spec.Lifecycle })
			for _, pod := range activePods(w) {
				require.NoError(t, cluster.Change(w, cluster.UserActor, "", pod, func(o *corev1.Pod) { o.Labels[simulate.HookLabel] = simulate.HookTaken }))
			}
			simulate.Settle(t, w, p, 1000)
			assert.Len(t, w.View(nil).Available("set-uid", 0), 2)
		})
	}
}
