package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/workloads/podupdate"
)

// refusing is the plan while the server refuses writes to pod web-2 for a purpose.
func refusing(w *world, verb action.Verb, reason string) string {
	s := w.snapshot()
	uid := ""
	for _, o := range s.Pods {
		if o.Name == "web-2" {
			uid = string(o.UID)
		}
	}
	s.Refusals = action.Refusals{{Verb: verb, Kind: "pod", Reason: reason}: {
		Told:    action.Told{Message: "denied by policy"},
		Targets: map[string]action.Refusal{uid: {Until: now.Add(20 * time.Second)}},
	}}
	todo := Compute(s)
	return todo.String()
}

func TestARefusedDeletionHoldsUpNoOther(t *testing.T) {
	assert.Contains(t, refusing(given(t, 3).old(at(0, 1)).old(at(2)), action.Delete, podupdate.DeleteToRecreate), "Delete pod web-1")
	assert.Contains(t, refusing(given(t, 3).old(at(0, 1)).old(at(2), marked()), action.Delete, "SpecifiedDelete"), "Delete pod web-1")
	assert.NotContains(t, refusing(given(t, 3, inOrder()).old(at(0, 1)).old(at(2), marked()), action.Delete, "SpecifiedDelete"), "Delete pod", "in order")
}

func TestSpecifiedPodsOfAnOrderedSetGoAfterSurplusPods(t *testing.T) {
	for name, tt := range map[string]struct {
		w    *world
		want []string
	}{
		"a surplus pod goes":       {given(t, 2, inOrder()).updated(at(0)).updated(at(1), marked()).updated(at(2), terminating), []string{}},
		"a surplus pod is next":    {given(t, 2, inOrder()).updated(at(0)).updated(at(1), marked()).updated(at(2)), []string{"delete 2"}},
		"no surplus pod":           {given(t, 2, inOrder()).updated(at(0)).updated(at(1), marked()), []string{"delete 1"}},
		"it is out of service":     {given(t, 2, inOrder()).updated(at(0)).updated(at(1), marked(), unready).updated(at(2), terminating), []string{"delete 1"}},
		"all at once, in parallel": {given(t, 2).updated(at(0)).updated(at(1), marked()).updated(at(2)), []string{"delete 2", "delete 1"}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tt.want, tt.w.did()) })
	}
}
