package revision

import (
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/workloads/ownership"
)

// DefaultHistoryLimit is how an absent spec.revisionHistoryLimit reads.
const DefaultHistoryLimit = 10

// Adopt takes the revisions without a controller that were chosen, and those orphans whose short hashes are
// live: those of active pods. The reference names the workload.
func Adopt(c Choice, orphans []*appsv1.ControllerRevision, live map[string]bool, ref metav1.OwnerReference) []action.Action {
	var actions []action.Action
	seen := map[string]bool{}
	for i, r := range append([]*appsv1.ControllerRevision{c.Update, c.Current}, orphans...) {
		chosen := i < 2
		if r == nil || seen[r.Name] || metav1.GetControllerOfNoCopy(r) != nil || !chosen && !live[Hash(r)] {
			continue
		}
		seen[r.Name] = true
		actions = append(actions, ownership.Adopt(r, ref, nil, "it has no controller, and pods or the template are of it"))
	}
	return actions
}

// RecordActions returns the action that writes the revision chosen for the template: it creates a new one, or gives
// an old one the highest number after a rollback. There is none for the newest revision, and none for a revision that
// must be adopted first: a later pass renumbers it.
func RecordActions(c Choice) []action.Action {
	switch {
	case c.Update == nil:
		return nil
	case c.Create:
		return []action.Action{{
			Verb: action.Create, Object: c.Update, Reason: "NewTemplate", Message: "revision " + strconv.FormatInt(c.Update.Revision, 10),
		}}
	case c.Renumber && metav1.GetControllerOfNoCopy(c.Update) != nil:
		body := map[string]any{"revision": c.Number}
		if c.SetClaimsHash {
			body["metadata"] = map[string]any{"annotations": map[string]any{
				contract.VolumeClaimTemplateHashAnnotation: c.ClaimsHash,
			}}
		}
		return []action.Action{{
			Verb: action.PatchSpec, Object: c.Update, Reason: "Rollback",
			Message: "the template equals this revision again", Patches: []action.Patch{{Body: body}},
		}}
	}
	return nil
}

// TruncateHistory deletes what Truncate finds. The limit is spec.revisionHistoryLimit; nil is DefaultHistoryLimit.
func TruncateHistory(owned []*appsv1.ControllerRevision, live map[string]bool, limit *int32) []action.Action {
	var actions []action.Action
	for _, r := range beyondLimit(owned, live, ptr.Deref(limit, DefaultHistoryLimit)) {
		actions = append(actions, action.Action{
			Verb: action.Delete, Object: r, Reason: "HistoryLimit", Message: "beyond spec.revisionHistoryLimit",
		})
	}
	return actions
}
