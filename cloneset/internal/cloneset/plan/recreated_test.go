package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/testing/gen"
)

// A pod that goes for an update has the same event with a preDelete hook and without.
func TestARecreationIsReportedAfterItsHook(t *testing.T) {
	for name, w := range map[string]*world{
		"no hook": given(t, 1).old(1),
		"the hook has released it": given(t, 1, hooked()).old(1, gen.Lifecycle(contract.LifecyclePreparingDelete),
			gen.Label(contract.SpecifiedDeleteLabel, contract.SpecifiedDeleteForUpdate)),
	} {
		event := w.plan().Steps[0].Actions[0].Event
		assert.Equal(t, EventRecreated, event.Succeeded, name)
		assert.Contains(t, event.Note, w.revisions[1].Name, name)
	}
	specified := given(t, 1, hooked()).old(1, gen.Lifecycle(contract.LifecyclePreparingDelete), gen.SpecifiedDelete())
	assert.Equal(t, EventDeleted, specified.plan().Steps[0].Actions[0].Event.Succeeded)
}
