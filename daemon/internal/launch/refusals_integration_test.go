package launch_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv/faults"

	"github.com/flotilla-project/flotilla/daemon/internal/podmarks"
)

// A server that refuses writes to ConfigMaps and statuses of pods hears little of them, however much happens to the
// pods, and what was wanted happens soon after.
func TestARefusedControllerIsQuiet(t *testing.T) {
	env.Need(t)
	faults.EachRefusal(t, func(t *testing.T, f *faults.Refusing) {
		t.Helper()
		namespace := env.Namespace(t)
		f.For, f.Of = 11*time.Second, func(r *http.Request) bool {
			return faults.IsWrite(r) && strings.Contains(r.URL.Path, "/"+namespace+"/")
		}
		givenControllerOf(t, faults.Over(env, f.Send), namespace)
		c := env.Client(t)
		pod := newPod(namespace)
		create(t, c, pod)
		gated := newPod(namespace) // one write is wanted of each pod: of two without an answer, one waits for the other
		gated.Name = "gated"
		gated.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: contract.KruisePodReady}}
		for i := range gated.Spec.Containers {
			gated.Spec.Containers[i].Env = nil
		}
		create(t, c, gated)
		begun := newPod(namespace)
		begun.Name = "begun"
		for i := range begun.Spec.Containers {
			begun.Spec.Containers[i].Env = []corev1.EnvVar{podmarks.Barrier("begun", 10-i)}
		}
		create(t, c, begun)
		m := ownedBy(namespace, begun, "p_10")
		m.Name = "begun-barrier"
		create(t, c, m)
		becomeReady(t, c, begun, begun.Spec.Containers[0].Name)
		for !f.Over() {
			becomeReady(t, c, pod)
			becomeReady(t, c, gated)
			<-time.After(200 * time.Millisecond)
			becomeReady(t, c, pod, "none")
			becomeReady(t, c, gated, "none")
		}
		opened(t, c, pod, "p_10")
		await.Until(t, func(collect *assert.CollectT) {
			require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(m), m))
			assert.Len(collect, m.Data, 2)
			assert.True(collect, metav1.IsControlledBy(m, begun))
			require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(gated), gated))
			assert.NotNil(collect, podstate.Condition(gated, contract.KruisePodReady))
		})
		assert.Equal(t, 3, f.AssertQuiet(t, 2), "a pod, the ConfigMaps, and one of them")
	})
}
