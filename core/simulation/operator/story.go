package operator

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
)

// tellResult adds an action of the operator and its outcome to the story. It leaves out writes of the workload's
// status, which only repeat them.
func tellResult(w *cluster.World, actor string, r *progress.Outcome) {
	a := r.Action
	if _, isPod := a.Object.(*corev1.Pod); a.Verb == action.PatchStatus && !isPod {
		return
	}
	text := sentence(a)
	switch r.State {
	case progress.Done:
	case progress.Stale:
		text += " [stale]"
	default:
		text += " [" + r.Err.Error() + "]"
	}
	w.Tell(actor, "%s", text)
}

// sentence returns the action in words.
func sentence(a *action.Action) string {
	words := map[action.Verb]string{
		action.Create:        "create %s",
		action.Delete:        "delete %s",
		action.Adopt:         "adopt %s",
		action.Release:       "release %s",
		action.PatchMetadata: "label %s",
		action.PatchStatus:   "mark %s",
		action.PatchSpec:     "change %s",
		action.UpdateInPlace: "update %s in place",
	}
	text := fmt.Sprintf(words[a.Verb], strings.ToLower(cluster.KindOf(a.Object))+" "+a.Object.GetName())
	if a.Reason != "" {
		text += " (" + a.Reason + ")"
	}
	if a.Message != "" {
		text += ": " + a.Message
	}
	return text
}
