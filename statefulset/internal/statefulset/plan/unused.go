package plan

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/workloads/ownership"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// An ordinal that is scaled in while it has no pod, because that was evicted a moment before, leaves claims that go
// with no pod. The operator deletes them, but no others that merely have the name of a claim of the set: another
// client may have made them for the pods to come. So claims that go with their ordinal name their set in an
// annotation.

// mark adds to the patch the annotation that shows whether the claim goes with its ordinal, and reports whether that
// changes.
func (p *pass) mark(claim *corev1.PersistentVolumeClaim, patch *action.Patch, goes bool) bool {
	if goes == p.isMarked(claim) {
		return false
	}
	var value any
	if goes {
		value = string(p.Set.UID)
	}
	if patch.Body == nil {
		patch.Body = map[string]any{"metadata": map[string]any{}}
	}
	patch.Body["metadata"].(map[string]any)["annotations"] = map[string]any{v1beta1.DeleteWhenScaledAnnotation: value}
	return true
}

func (p *pass) isMarked(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Annotations[v1beta1.DeleteWhenScaledAnnotation] == string(p.Set.UID)
}

// settleUnusedClaims deletes claims that go with an ordinal which does not run and has no pod. Other claims without a
// pod of their ordinal, or with a removed claim template, stay where no policy lets them go.
func (p *pass) settleUnusedClaims() []action.Action {
	ordinals := make(map[int32]bool, len(p.pods))
	for i := range p.pods {
		ordinals[p.pods[i].ordinal] = true
	}
	var actions []action.Action
	for _, claim := range p.Claims {
		ordinal, present := p.ordinalOfClaim(claim.Name)
		_, runs := p.live.Rank(ordinal)
		goes := present && p.deletesWithScale()
		switch {
		case claim.DeletionTimestamp != nil || present && ordinals[ordinal] || p.isWritten(claim):
		case goes && !runs && p.isMarked(claim) && !hasOtherOwner(claim, p.Set.UID):
			actions = append(actions, action.Action{
				Verb:    action.Delete,
				Object:  claim,
				Guard:   action.Unmounted,
				Reason:  "OrdinalGone",
				Message: "its ordinal was scaled in or reserved, and its pod is gone",
				Event:   &action.Event{Failed: EventDeleteFailed},
			})
		default:
			if patch, changes := p.keepUnused(claim, present && p.deletesWithSet(), goes); changes {
				actions = append(actions, writeOwners(claim, patch, "persistentVolumeClaimRetentionPolicy keeps it"))
			}
		}
	}
	return actions
}

// keepUnused is the patch with which a claim outlasts the set, unless it goes with that, and the end of its ordinal, unless
// it goes with that.
func (p *pass) keepUnused(claim *corev1.PersistentVolumeClaim, withSet, withOrdinal bool) (patch action.Patch, changes bool) {
	disowned := isOwner(claim, p.Set.UID) && !withSet
	if disowned {
		patch = ownership.ReferencesPatch([]types.UID{p.Set.UID})
	}
	return patch, p.isMarked(claim) && p.mark(claim, &patch, withOrdinal) || disowned
}

// ordinalOfClaim is the ordinal in the name of a claim, and whether a claim template makes claims of that name.
func (p *pass) ordinalOfClaim(name string) (ordinal int32, present bool) {
	for i := range p.Set.Spec.VolumeClaimTemplates {
		pod, ok := strings.CutPrefix(name, p.Set.Spec.VolumeClaimTemplates[i].Name+"-")
		if !ok {
			continue
		}
		if ordinal, present = ordinalOf(p.Set.Name, pod); present {
			return ordinal, true
		}
	}
	return 0, false
}

// hasOtherOwner reports whether the claim goes with another owner than the set, such as a former pod.
func hasOtherOwner(claim *corev1.PersistentVolumeClaim, set types.UID) bool {
	return slices.ContainsFunc(claim.OwnerReferences, func(ref metav1.OwnerReference) bool { return ref.UID != set })
}
