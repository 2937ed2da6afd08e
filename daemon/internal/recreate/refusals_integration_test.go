package recreate_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv/faults"

	"github.com/flotilla-project/flotilla/daemon/internal/recreate"
)

// ofRequests reports whether a request writes what requests are made of.
func ofRequests(r *http.Request) bool {
	return faults.IsWrite(r) && (strings.Contains(r.URL.Path, "/pods/") || strings.Contains(r.URL.Path, "/containerrecreaterequests/"))
}

// What the server refuses is tried now and then, and done soon after it is refused no more.
func TestARefusedManagerIsQuiet(t *testing.T) {
	env.Need(t)
	faults.EachRefusal(t, func(t *testing.T, f *faults.Refusing) {
		t.Helper()
		f.For, f.Of = 12*time.Second, ofRequests
		c := env.Client(t)
		pod := givenPod(t, c)
		shaky := faults.Over(env, f.Send)
		cached, pods := cacheOf(pod.Namespace)
		shaky.Control(t, cached, func(mgr manager.Manager, reader fastclient.Options) error {
			return recreate.SetUp(t.Context(), mgr, pass.Settings{Reader: reader, Namespace: pod.Namespace, UserAgent: userAgent}, &recreate.Backlog{}, pods)
		})
		machine := givenNode(t, c, pod)
		r := newRequest("again", pod, "a")
		r.Spec.Strategy.UnreadyGracePeriodSeconds = new(int64(1))
		r.Spec.ActiveDeadlineSeconds = new(int64(3600))
		require.NoError(t, c.Create(t.Context(), r))
		completes(t, c, r)
		assert.Equal(t, []string{"containerd://a-0"}, machine.killed())
		await.Until(t, func(collect *assert.CollectT) {
			require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
			assert.Equal(collect, corev1.ConditionTrue, podstate.Condition(pod, contract.KruisePodReady).Status)
		})
		f.AssertQuiet(t, 1)
	})
}
