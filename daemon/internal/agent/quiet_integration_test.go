package agent_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/testenv/faults"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/simulate"
)

// What the agent may not write of its images and pods it tries now and then, however much happens to them, and
// writes soon after it may.
func TestARefusedAgentIsQuiet(t *testing.T) {
	env.Need(t)
	faults.EachRefusal(t, func(t *testing.T, f *faults.Refusing) {
		t.Helper()
		f.For, f.Of = 25*time.Second, func(r *http.Request) bool {
			return faults.IsWrite(r) && strings.HasSuffix(r.URL.Path, "/status") &&
				(strings.Contains(r.URL.Path, "/nodeimages/") || strings.Contains(r.URL.Path, "/pods/"))
		}
		n := givenRefusedNode(t, f)
		n.runtime.AddRemoteImage("docker.io/library/app:1", simulate.RemoteImage{ID: "sha256:one"})
		n.wantImages(map[string]v1beta1.ImageSpec{"app": tags(tag("1", 1))})
		pod := n.run(n.podOfASet("web"))
		for i := 0; !f.Over(); i++ {
			n.touch(&v1beta1.NodeImage{}, client.ObjectKey{Name: n.name}, i)
			n.touch(pod, client.ObjectKeyFromObject(pod), i)
			<-time.After(200 * time.Millisecond)
		}
		n.eventuallyPhases(map[string]v1beta1.ImagePullPhase{"app:1": v1beta1.ImageSucceeded})
		n.eventuallyReported(pod)
		require.Equal(t, 2, f.AssertQuiet(t, 2))
		for object, count := range f.Tries(10*time.Second, 25*time.Second) {
			assert.LessOrEqual(t, count, 2, object)
		}
	})
}

// touch changes a label, as anybody may at any time.
func (n *node) touch(o client.Object, key client.ObjectKey, i int) {
	n.t.Helper()
	require.NoError(n.t, n.client.Get(n.t.Context(), key, o))
	base := o.DeepCopyObject().(client.Object)
	o.SetLabels(map[string]string{"touched": fmt.Sprint(i)})
	require.NoError(n.t, n.client.Patch(n.t.Context(), o, client.MergeFrom(base)))
}
