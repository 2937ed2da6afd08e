package agent_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/flotilla-project/flotilla/core/testenv/faults"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/simulate"
)

// What the server refuses is tried again after longer and longer pauses, and nothing is stopped meanwhile.
func TestRefusedWritesAreTriedAgainWithPauses(t *testing.T) {
	for name, err := range faults.Refusals() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &faults.Refusing{Err: err, For: 12 * time.Second, Of: func(r *http.Request) bool {
				return r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/containerrecreaterequests/")
			}}
			n := givenNodeWithoutAgent(t)
			n.runtime = simulate.NewRuntime(t, "containerd", filepath.Join(n.folder, "containerd", "containerd.sock"))
			n.send = f.Send
			n.start()
			n.givenManager()
			pod := n.run(n.podNamed("web", "app"))
			phases, _ := n.eventuallyCompleted(n.ask(n.requestFor(pod, "app")))
			assert.Equal(t, []v1beta1.RecreatePhase{succeeded}, phases)
			assert.Equal(t, []string{containerID(pod, "app")}, n.stopped())
			assert.True(t, f.Over(), "nothing is stopped before it is written")
			tries := f.Tries(0, 10*time.Second)
			assert.NotEmpty(t, tries)
			for object, n := range tries {
				assert.LessOrEqual(t, n, 10, object)
			}
		})
	}
}
