package plan

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/newpod"
	"github.com/flotilla-project/flotilla/core/workloads/ownership"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// deletesWithSet reports whether claims go with the set.
func (p *pass) deletesWithSet() bool {
	policy := p.Set.Spec.PersistentVolumeClaimRetentionPolicy
	return policy != nil && policy.WhenDeleted == appsv1.DeletePersistentVolumeClaimRetentionPolicyType
}

// deletesWithScale reports whether claims go with pods of ordinals that no longer run.
func (p *pass) deletesWithScale() bool {
	policy := p.Set.Spec.PersistentVolumeClaimRetentionPolicy
	return policy != nil && policy.WhenScaled == appsv1.DeletePersistentVolumeClaimRetentionPolicyType
}

// ownClaims gives claims the owners with which persistentVolumeClaimRetentionPolicy lets them go. The garbage
// collector does the rest. A live pod is never an owner: claims stay when a pod is lost, with its node or without.
// Claims of ordinals that were scaled in while they had no pod have no owner to go with.
func ownClaims(p *pass) {
	if p.plan.Err != nil {
		return
	}
	step := action.Step{Name: stepClaims, Actions: p.retentions}
	for i := range p.pods {
		if o := &p.pods[i]; !o.foreign {
			step.Actions = append(step.Actions, p.correctOwners(o)...)
		}
	}
	if p.FeatureGates.AutoDeletePVC {
		step.Actions = append(step.Actions, p.settleUnusedClaims()...)
	}
	p.plan.Add(step)
}

// correctOwners corrects the owners of the pod's claims. A terminating pod with an ordinal that runs may have been
// condemned a moment ago: the decision of that moment stays.
//
//	whenDeleted Delete: the set; whenScaled Delete: the pod once it is condemned, and then not the set.
//
// With whenScaled Delete claims are marked as well, for the case that their pod is missing when its ordinal is scaled in:
// new ones at once, others with their next write, or when their pod leaves service.
func (p *pass) correctOwners(o *pod) []action.Action {
	if !p.FeatureGates.AutoDeletePVC {
		return nil
	}
	var actions []action.Action
	for i := range p.Set.Spec.VolumeClaimTemplates {
		claim := p.Claim(claimName(&p.Set.Spec.VolumeClaimTemplates[i], o.Pod.Name))
		if claim == nil || claim.DeletionTimestamp != nil || p.hasForeignOwner(claim, o) || p.isWritten(claim) {
			continue
		}
		if patch, changes := p.correctionOf(claim, o); changes {
			actions = append(actions, writeOwners(claim, patch, "its owner references differ from persistentVolumeClaimRetentionPolicy"))
		}
	}
	return actions
}

// correctionOf is the patch that corrects the owners and the mark of a claim of the pod.
func (p *pass) correctionOf(claim *corev1.PersistentVolumeClaim, o *pod) (patch action.Patch, changes bool) {
	if !o.live || !o.Terminating {
		byPod := !o.live && p.deletesWithScale()
		patch, changes = p.owners(claim, o.Pod, p.deletesWithSet() && !byPod, byPod)
	}
	if changes || !p.deletesWithScale() || !o.serving() && !isOwner(claim, o.Pod.UID) {
		changes = p.mark(claim, &patch, p.deletesWithScale()) || changes
	}
	return patch, changes
}

// removeOwners removes the set and the pod as owners of the claims of a pod that is released: they would go with
// either, and the pod runs on.
func (p *pass) removeOwners(o *pod) []action.Action {
	if !p.FeatureGates.AutoDeletePVC {
		return nil
	}
	var actions []action.Action
	for i := range p.Set.Spec.VolumeClaimTemplates {
		claim := p.Claim(claimName(&p.Set.Spec.VolumeClaimTemplates[i], o.Pod.Name))
		if claim == nil || claim.DeletionTimestamp != nil {
			continue
		}
		patch, changes := p.owners(claim, o.Pod, false, false)
		if p.mark(claim, &patch, false) || changes {
			actions = append(actions, writeOwners(claim, patch, "its pod is released"))
		}
	}
	return actions
}

// writeOwners gives the claim other owners.
func writeOwners(claim *corev1.PersistentVolumeClaim, patch action.Patch, why string) action.Action {
	return action.Action{
		Verb:    action.PatchMetadata,
		Object:  claim,
		Patches: []action.Patch{patch},
		Reason:  "RetentionPolicy",
		Message: why,
		Event:   &action.Event{Failed: EventUpdateFailed},
	}
}

// isWritten reports whether the claim is written in this pass already.
func (p *pass) isWritten(claim *corev1.PersistentVolumeClaim) bool {
	writes := func(a action.Action) bool { return !a.Held && a.Object.GetName() == claim.Name }
	return slices.ContainsFunc(p.resizes.Actions, writes) || slices.ContainsFunc(p.retentions, writes)
}

// owners is the patch that makes the set and the pod owners of the claim, or not. A reference that is
// there already stays as it is, also where it does not name its owner as the controller, as older ones
// do not.
func (p *pass) owners(claim *corev1.PersistentVolumeClaim, o *corev1.Pod, bySet, byPod bool) (patch action.Patch, changes bool) {
	hasSet, hasPod := isOwner(claim, p.Set.UID), isOwner(claim, o.UID)
	if hasSet == bySet && hasPod == byPod {
		return patch, false
	}
	var remove []types.UID
	var write []metav1.OwnerReference
	if hasSet && !bySet {
		remove = append(remove, p.Set.UID)
	}
	if hasPod && !byPod {
		remove = append(remove, o.UID)
	}
	if bySet && !hasSet {
		write = append(write, p.Owner)
	}
	if byPod && !hasPod {
		write = append(write, podRef(o))
	}
	return ownership.ReferencesPatch(remove, write...), true
}

func isOwner(claim *corev1.PersistentVolumeClaim, uid types.UID) bool {
	return slices.ContainsFunc(claim.OwnerReferences, func(ref metav1.OwnerReference) bool { return ref.UID == uid })
}

// podRef names a pod as the controller of a claim. The pod's deletion does not wait for the claim: asking for
// that takes the right to update finalizers of all pods.
func podRef(o *corev1.Pod) metav1.OwnerReference {
	ref := ownership.PodReference(o)
	ref.Controller = new(true)
	return ref
}

// hasForeignOwner reports whether another controller owns the claim, or it belongs to a former pod or set of the same
// name, with which it goes. Such claims are left alone.
func (p *pass) hasForeignOwner(claim *corev1.PersistentVolumeClaim, o *pod) bool {
	for i := range claim.OwnerReferences {
		ref := &claim.OwnerReferences[i]
		if ref.UID == p.Set.UID || ref.UID == o.Pod.UID {
			continue
		}
		if ref.Controller != nil && *ref.Controller || isRefTo(ref, "Pod", "", o.Pod.Name) || isRefTo(ref, v1beta1.Kind, contract.AppsGroup, p.Set.Name) {
			return true
		}
	}
	return false
}

// noteConflicts reports that another controller owns claims of a new pod, where claims go with the set or with pods.
func (p *pass) noteConflicts(mounts []newpod.Mount) {
	if !p.FeatureGates.AutoDeletePVC || !p.deletesWithSet() && !p.deletesWithScale() {
		return
	}
	for _, m := range mounts {
		claim := p.Claim(m.Claim)
		if claim == nil {
			continue
		}
		ref := metav1.GetControllerOfNoCopy(claim)
		if ref == nil || ref.UID == p.Set.UID {
			continue
		}
		p.plan.Notices = append(p.plan.Notices, action.Notice{
			Type:    corev1.EventTypeWarning,
			Reason:  EventConflict,
			Related: claim,
			Note:    "PVC " + claim.Name + " is controlled by " + ref.Kind + " " + ref.Name + ": persistentVolumeClaimRetentionPolicy does not apply to it",
		})
	}
}

// hasFormerPod reports whether the claim goes with a pod of the name that is gone already. The kind counts: an
// owner of another kind may have any name.
func (p *pass) hasFormerPod(claim *corev1.PersistentVolumeClaim, pod string) bool {
	return p.FeatureGates.AutoDeletePVC && len(formerPods(claim, pod)) > 0
}

func formerPods(claim *corev1.PersistentVolumeClaim, pod string) []types.UID {
	var uids []types.UID
	for i := range claim.OwnerReferences {
		if isRefTo(&claim.OwnerReferences[i], "Pod", "", pod) {
			uids = append(uids, claim.OwnerReferences[i].UID)
		}
	}
	return uids
}

// retainClaim takes a claim from a former pod with which it would go, where the policy retains claims again. Its
// pod is created by the next pass, unless the collector was faster.
func (p *pass) retainClaim(claim *corev1.PersistentVolumeClaim, pod string) {
	a := writeOwners(claim, ownership.ReferencesPatch(formerPods(claim, pod)), "it is retained")
	p.claimsFirst = true
	p.plan.Wait(WaitClaims, claim.Name, "the owner reference to the deleted pod is removed from the PVC before pod %s is created", pod)
	p.retentions = append(p.retentions, a)
}

func isRefTo(ref *metav1.OwnerReference, kind, group, name string) bool {
	gk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
	return ref.Name == name && gk == schema.GroupKind{Group: group, Kind: kind}
}
