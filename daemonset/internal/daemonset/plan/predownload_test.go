package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
)

// Few nodes are updated one after the other, too: pulling ahead saves the time of a pull on each.
func TestImagesArePulledAheadOnFewNodes(t *testing.T) {
	creates := func(w *world) (names []string) {
		w.featureGates.PreDownload, w.pulls.Version = true, "v1beta1"
		for a := range simulate.Actions(w.plan().PreDownload.Steps, "") {
			if a.Verb == action.Create {
				names = append(names, a.Object.GetName())
			}
		}
		return names
	}
	w := given(t, 2).old("n1 n2")
	assert.Equal(t, []string{w.revisions[1].Name + "-main"}, creates(w))
	assert.Empty(t, creates(given(t, 1).old("n1")), "all nodes at once")
	assert.Empty(t, creates(given(t, 2, deleting).old("n1 n2")), "users decide when")
	assert.Empty(t, creates(given(t, 2).updated("n1 n2")))
}
