package revision

import (
	"strconv"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/flotilla-project/flotilla/core/action"
	"github.com/flotilla-project/flotilla/core/contract"
)

// Record writes what was chosen for the template: a new revision, or an old one raised to the top after
// a rollback. There is nothing to write for the newest one. The claims' hash is that of Input.
func Record(c Choice, claimsHash string) []action.Action {
	switch {
	case c.Update == nil:
		return nil
	case c.Create:
		return []action.Action{{
			Verb: action.Create, Object: c.Update, Reason: "NewTemplate", Message: "revision " + strconv.FormatInt(c.Update.Revision, 10),
		}}
	case c.Renumber:
		body := map[string]any{"revision": c.Number}
		if c.SetClaimsHash {
			body["metadata"] = map[string]any{"annotations": map[string]any{
				contract.VolumeClaimTemplateHashAnnotation: claimsHash,
			}}
		}
		return []action.Action{{
			Verb: action.PatchSpec, Object: c.Update, Reason: "Rollback",
			Message: "the template equals this revision again", Patches: []action.Patch{{Body: body}},
		}}
	}
	return nil
}

// Expire deletes what Truncate finds.
func Expire(owned []*appsv1.ControllerRevision, live map[string]bool, limit int32) []action.Action {
	var actions []action.Action
	for _, r := range Truncate(owned, live, limit) {
		actions = append(actions, action.Action{
			Verb: action.Delete, Object: r, Reason: "HistoryLimit", Message: "beyond spec.revisionHistoryLimit",
		})
	}
	return actions
}
