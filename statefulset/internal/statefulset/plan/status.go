package plan

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/workloads/model"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// Status is the next status of the set, counted from the pods as they were before the plan's writes.
func Status(s Snapshot, todo Plan, done action.Failures) v1beta1.StatefulSetStatus {
	p := newPass(s)
	status := *s.Set.Status.DeepCopy()
	p.SetStatus(s.Set.Spec.Selector, model.StatusFields{
		ObservedGeneration: &status.ObservedGeneration,
		LabelSelector:      &status.LabelSelector,
		CurrentRevision:    &status.CurrentRevision,
		UpdateRevision:     &status.UpdateRevision,
		CollisionCount:     &status.CollisionCount,
	})
	p.countInto(&status)
	if p.complete(status) {
		status.CurrentRevision = status.UpdateRevision
		status.CurrentReplicas = status.UpdatedReplicas
	}
	status.VolumeClaims = p.volumeClaims()
	if !done.NoProgress || s.Set.Status.ObservedGeneration != s.Set.Generation {
		status.Conditions = p.nextConditions(status, todo, done, metav1.NewTime(s.Now))
	}
	return status
}

// countInto counts live and condemned pods. Terminating ones are of no revision any more, but are ready
// for as long as they serve.
func (p *pass) countInto(status *v1beta1.StatefulSetStatus) {
	status.Replicas = int32(len(p.pods))
	status.ReadyReplicas = 0
	status.AvailableReplicas = 0
	status.CurrentReplicas = 0
	status.UpdatedReplicas = 0
	status.UpdatedReadyReplicas = 0
	status.UpdatedAvailableReplicas = 0
	current := podstate.ShortHash(status.CurrentRevision)
	for i := range p.pods {
		o := &p.pods[i]
		updated := int32(0)
		if o.updated {
			updated = 1
		}
		if !o.Terminating {
			status.UpdatedReplicas += updated
			if o.Revision == current || o.updated && p.updateHash() == current {
				status.CurrentReplicas++
			}
		}
		if o.Ready {
			status.ReadyReplicas++
			status.UpdatedReadyReplicas += updated
		}
		if o.Available {
			status.AvailableReplicas++
			status.UpdatedAvailableReplicas += updated
		}
	}
}

// complete reports whether a rolling update has ended: as many pods as wanted exist, all of them available
// and at the update revision. With a partition it never ends, also while there are no pods to keep, and never with type OnDelete.
func (p *pass) complete(status v1beta1.StatefulSetStatus) bool {
	return !onDelete(p.Set) && p.numbers.partition == 0 && status.Replicas == p.numbers.replicas &&
		status.UpdatedReplicas == p.numbers.replicas && status.AvailableReplicas == p.numbers.replicas
}

// volumeClaims counts for each template the pods with a claim that follows it. A claim that cannot be found follows
// nothing.
func (p *pass) volumeClaims() []v1beta1.VolumeClaimStatus {
	var all []v1beta1.VolumeClaimStatus
	for i := range p.Set.Spec.VolumeClaimTemplates {
		t := &p.Set.Spec.VolumeClaimTemplates[i]
		s := v1beta1.VolumeClaimStatus{VolumeClaimName: t.Name}
		for k := range p.pods {
			claim := p.Claim(claimName(t, p.pods[k].Pod.Name))
			if claim == nil || !sameKind(claim, t) || isSmallerThanTemplate(claim, t) {
				continue
			}
			s.CompatibleReplicas++
			if hasRequestedSize(claim) {
				s.CompatibleReadyReplicas++
			}
		}
		all = append(all, s)
	}
	return all
}
