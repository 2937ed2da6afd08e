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

// Adopt takes the revisions without a controller that were chosen, and those orphans that have live short hashes, which
// are the hashes of active pods. The reference names the workload.
func Adopt(c Choice, orphans []*appsv1.ControllerRevision, live map[string]bool, ref metav1.OwnerReference) []action.Action {
	var actions []action.Action
	seen := map[string]bool{}
	for i, r := range append([]*appsv1.ControllerRevision{c.Update, c.Current}, orphans...) {
		chosen := i < 2
		if r == nil || seen[r.Name] || metav1.GetControllerOfNoCopy(r) != nil || !chosen && !live[Hash(r)] {
			continue
		}
		seen[r.Name] = true
		actions = append(actions, ownership.Adopt(r, ref, nil, "it has no controller, and pods or the template use it"))
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
			Verb:    action.Create,
			Object:  c.Update,
			Reason:  "NewTemplate",
			Message: "revision " + strconv.FormatInt(c.Update.Revision, 10),
		}}
	case c.Renumber && metav1.GetControllerOfNoCopy(c.Update) != nil:
		body := map[string]any{"revision": c.Number}
		metadata := map[string]any{}
		if c.SetClaimsHash {
			metadata["annotations"] = map[string]any{contract.VolumeClaimTemplateHashAnnotation: c.ClaimsHash}
		}
		if labels := withoutMarks(c.Update); len(labels) > 0 {
			metadata["labels"] = labels
		}
		if len(metadata) > 0 {
			body["metadata"] = metadata
		}
		return []action.Action{{
			Verb:    action.PatchSpec,
			Object:  c.Update,
			Reason:  "Rollback",
			Message: "the template equals this revision again",
			Patches: []action.Patch{{Body: body}},
		}}
	}
	return nil
}

// withoutMarks takes from a revision the marks of its former rollout, which show that its images were pulled ahead, or
// that this would gain nothing. Nodes may have come since, or have removed the images.
func withoutMarks(r *appsv1.ControllerRevision) map[string]any {
	labels := map[string]any{}
	for _, mark := range []string{contract.ImagePreDownloadCreatedLabel, contract.ImagePreDownloadIgnoredLabel} {
		if _, has := r.Labels[mark]; has {
			labels[mark] = nil
		}
	}
	return labels
}

// TruncateHistory deletes the revisions that Truncate finds. The limit is spec.revisionHistoryLimit; nil is
// DefaultHistoryLimit.
func TruncateHistory(owned []*appsv1.ControllerRevision, live map[string]bool, limit *int32) []action.Action {
	var actions []action.Action
	for _, r := range beyondLimit(owned, live, ptr.Deref(limit, DefaultHistoryLimit)) {
		actions = append(actions, action.Action{
			Verb:    action.Delete,
			Object:  r,
			Reason:  "HistoryLimit",
			Message: "beyond spec.revisionHistoryLimit",
		})
	}
	return actions
}
