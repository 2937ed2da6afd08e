package revision

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
)

func TestWhatWasChosenIsRecorded(t *testing.T) {
	r := owned("web-x", 3)
	raised := map[string]any{"revision": int64(5)}
	withHash := map[string]any{"revision": int64(5), "metadata": map[string]any{
		"annotations": map[string]any{contract.VolumeClaimTemplateHashAnnotation: "h"},
	}}
	pulled := owned("web-x", 3)
	pulled.Labels = map[string]string{contract.ImagePreDownloadCreatedLabel: "true", contract.RevisionHashLabel: "x"}
	pulledNoLonger := map[string]any{"revision": int64(5), "metadata": map[string]any{
		"labels": map[string]any{contract.ImagePreDownloadCreatedLabel: nil},
	}}
	for name, c := range map[string]struct {
		choice Choice
		verb   action.Verb
		body   map[string]any
	}{
		"its images are pulled again": {Choice{Update: pulled, Renumber: true, Number: 5}, action.PatchSpec, pulledNoLonger},
		"a new one is created":        {Choice{Update: r, Create: true}, action.Create, nil},
		"an old one is raised":        {Choice{Update: r, Renumber: true, Number: 5}, action.PatchSpec, raised},
		"its claims' hash is renewed": {Choice{Update: r, Renumber: true, Number: 5, ClaimsHash: "h", SetClaimsHash: true}, action.PatchSpec, withHash},
	} {
		t.Run(name, func(t *testing.T) {
			actions := RecordActions(c.choice)
			require.Len(t, actions, 1)
			assert.Equal(t, c.verb, actions[0].Verb)
			assert.Same(t, c.choice.Update, actions[0].Object)
			if c.body != nil {
				assert.Equal(t, c.body, actions[0].Patches[0].Body)
			}
		})
	}
	assert.Empty(t, RecordActions(Choice{Update: r}), "the newest one is there")
	assert.Empty(t, RecordActions(Choice{}), "there is none")
	assert.Empty(t, RecordActions(Choice{Update: orphaned("web-x", 3), Renumber: true, Number: 5}), "it is adopted first")
}

func owned(name string, number int64) *appsv1.ControllerRevision {
	r := orphaned(name, number)
	r.OwnerReferences = []metav1.OwnerReference{{Kind: "CloneSet", Name: "web", UID: "set-uid", Controller: new(true)}}
	return r
}

func orphaned(name string, number int64) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: name}, Revision: number}
}

// Only what was chosen or is live is taken: others may be left of a workload that had the same labels.
func TestOrphansThatAreNeededAreAdopted(t *testing.T) {
	chosen, live, idle := orphaned("web-chosen", 3), orphaned("web-live", 2), orphaned("web-idle", 1)
	c := Choice{Update: chosen, Current: owned("web-mine", 4)}
	var names []string
	for _, a := range Adopt(c, []*appsv1.ControllerRevision{idle, live, chosen}, map[string]bool{"live": true, "mine": true}, metav1.OwnerReference{UID: "set-uid"}) {
		assert.Equal(t, action.Adopt, a.Verb)
		names = append(names, a.Object.GetName())
	}
	assert.Equal(t, []string{"web-chosen", "web-live"}, names)
	assert.Empty(t, Adopt(Choice{Update: owned("web-x", 1), Create: true}, nil, nil, metav1.OwnerReference{}))
}

func TestRevisionsBeyondTheLimitExpire(t *testing.T) {
	var owned []*appsv1.ControllerRevision
	for i, name := range []string{"web-a", "web-b", "web-c"} {
		owned = append(owned, &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: name}, Revision: int64(i)})
	}
	actions := TruncateHistory(owned, map[string]bool{"a": true}, new(int32(1)))
	require.Len(t, actions, 1)
	assert.Equal(t, "Delete controllerrevision web-b (HistoryLimit): beyond spec.revisionHistoryLimit", actions[0].String())
}

func TestPodsTellTheirRevision(t *testing.T) {
	assert.Equal(t, map[string]string{contract.RevisionLabel: "web-6d8f7c9b5d"}, Labels("web-6d8f7c9b5d"))
	assert.Equal(t, map[string]string{contract.RevisionLabel: "6d8f7c9b5d"}, Labels(strings.Repeat("w", 60)+"-6d8f7c9b5d"), "a label holds 63 characters")
}

func TestStatusKeepsWhatIsNotFound(t *testing.T) {
	current, update, collisions := "web-x", "web-y", new(int32(1))
	Choice{}.Status(&current, &update, &collisions)
	assert.Equal(t, []any{"web-x", "web-y", new(int32(1))}, []any{current, update, collisions})
	Choice{Current: owned("web-a", 1), Update: owned("web-b", 2), CollisionCount: 3}.Status(&current, &update, &collisions)
	assert.Equal(t, []any{"web-a", "web-b", new(int32(3))}, []any{current, update, collisions})
}
