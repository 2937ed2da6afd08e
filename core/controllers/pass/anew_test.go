package pass

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
)

// creation is a pass over object web with this UID that creates a child.
func (w *world) creation(uid types.UID) Pass {
	owner := &appsv1.ReplicaSet{ObjectMeta: metaOf("web")}
	owner.UID, owner.Generation = uid, 1
	p := Pass{Object: owner, Plan: action.Plan{Now: w.clock.Now(), Refusals: w.controller.KnownRefusals(owner, nil, 0, w.clock.Now())}}
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "child"}}
	p.Plan.Add(action.Step{Name: "create", Actions: []action.Action{{Verb: action.Create, Object: child, Reason: "ScaleOut"}}})
	p.Plan = action.Admit(p.Plan)
	return p
}

// What was refused to an object says nothing of one that is made anew under its name, as kubectl replace --force does:
// its first plan is carried out at once, whether or not a pass has seen that there was none for a moment.
func TestAnObjectThatIsMadeAnewStartsAtOnce(t *testing.T) {
	w := givenWorld(t)
	w.answers["configmaps"] = http.StatusUnprocessableEntity
	for range 2 {
		_, err := w.controller.Run(t.Context(), w.creation("first"))
		require.NoError(t, err)
	}
	require.Equal(t, []string{"configmaps"}, w.writes, "what was refused waits")
	anew := w.creation("second")
	assert.Empty(t, anew.Plan.Waits)
	_, err := w.controller.Run(t.Context(), anew)
	require.NoError(t, err)
	assert.Equal(t, []string{"configmaps", "configmaps"}, w.writes)
}
