package revision

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/action"
	"github.com/flotilla-project/flotilla/core/contract"
)

func TestWhatWasChosenIsRecorded(t *testing.T) {
	r := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "web-x"}, Revision: 3}
	raised := map[string]any{"revision": int64(5)}
	withHash := map[string]any{"revision": int64(5), "metadata": map[string]any{
		"annotations": map[string]any{contract.VolumeClaimTemplateHashAnnotation: "h"},
	}}
	for name, c := range map[string]struct {
		choice Choice
		verb   action.Verb
		body   map[string]any
	}{
		"a new one is created":        {Choice{Update: r, Create: true}, action.Create, nil},
		"an old one is raised":        {Choice{Update: r, Renumber: true, Number: 5}, action.PatchSpec, raised},
		"its claims' hash is renewed": {Choice{Update: r, Renumber: true, Number: 5, SetClaimsHash: true}, action.PatchSpec, withHash},
	} {
		t.Run(name, func(t *testing.T) {
			actions := Record(c.choice, "h")
			require.Len(t, actions, 1)
			assert.Equal(t, c.verb, actions[0].Verb)
			assert.Same(t, r, actions[0].Object)
			if c.body != nil {
				assert.Equal(t, c.body, actions[0].Patches[0].Body)
			}
		})
	}
	assert.Empty(t, Record(Choice{Update: r}, "h"), "the newest one is there")
	assert.Empty(t, Record(Choice{}, "h"), "there is none")
}

func TestRevisionsBeyondTheLimitExpire(t *testing.T) {
	var owned []*appsv1.ControllerRevision
	for i, name := range []string{"web-a", "web-b", "web-c"} {
		owned = append(owned, &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: name}, Revision: int64(i)})
	}
	actions := Expire(owned, map[string]bool{"a": true}, 1)
	require.Len(t, actions, 1)
	assert.Equal(t, "Delete controllerrevision web-b (HistoryLimit): beyond spec.revisionHistoryLimit", actions[0].String())
}
