package agent_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/flotilla-project/flotilla/core/testing/testenv/faults"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

// What the server refuses is tried again after longer and longer pauses, and nothing is stopped meanwhile.
func TestRefusedWritesAreTriedAgainWithPauses(t *testing.T) {
	faults.EachRefusal(t, func(t *testing.T, f *faults.Refusing) {
		t.Helper()
		f.For, f.Of = 12*time.Second, func(r *http.Request) bool {
			return r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/containerrecreaterequests/")
		}
		n := givenRefusedNode(t, f)
		n.givenManager()
		pod := n.run(n.podNamed("web", "app"))
		phases, _ := n.eventuallyCompleted(n.ask(n.requestFor(pod, "app")))
		assert.Equal(t, []v1beta1.RecreatePhase{succeeded}, phases)
		assert.Equal(t, []string{containerID(pod, "app")}, n.stopped())
		assert.True(t, f.Over(), "nothing is stopped before it is written")
		f.AssertQuiet(t, 1)
	})
}
