package plan

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/workloads/ownership"
	"github.com/flotilla-project/flotilla/core/workloads/revision"
)

// release gives up pods with labels that the selector no longer matches, and pods with a name that is not the name of
// a member. A released pod keeps its name: its ordinal is empty once another client has deleted it. It keeps its
// claims, which do not go with the set before.
func release(p *pass) {
	step := action.Step{Name: stepOwn}
	for _, o := range p.nonMembers {
		if o.DeletionTimestamp == nil {
			step.Actions = append(step.Actions, ownership.Release(o, p.Set.UID, "its name does not match the set"))
		}
	}
	claims := action.Step{Name: stepClaims}
	selector, err := metav1.LabelSelectorAsSelector(p.Set.Spec.Selector)
	for i := range p.pods {
		o := &p.pods[i]
		if err != nil || o.foreign || o.Terminating || selector.Matches(labels.Set(o.Pod.Labels)) {
			continue
		}
		o.foreign, o.touched = true, true
		claims.Actions = append(claims.Actions, p.removeOwners(o)...)
		step.Actions = append(step.Actions, ownership.Release(o.Pod, p.Set.UID, "its labels no longer match spec.selector"))
	}
	p.plan.Add(claims)
	p.plan.Add(step)
}

// adopt takes members and revisions that have no controller, and gives the set's own pods back the labels without
// which they are out of the operator's sight. Adopted pods fill their ordinals at once, but do not count as available.
func adopt(p *pass) {
	step := action.Step{Name: stepOwn}
	step.Actions = append(step.Actions, revision.Adopt(p.Chosen, p.OrphanRevisions, p.liveHashes(), p.Owner)...)
	for i := range p.pods {
		o := &p.pods[i]
		_, shown := o.Pod.Labels[appsv1.StatefulSetPodNameLabel]
		switch {
		case o.touched:
		case o.foreign:
			o.touched = true
			step.Actions = append(step.Actions, ownership.AdoptPod(o.Pod, p.Owner, p.missingLabels(o.State), "it has no controller and matches the set"))
		case !shown:
			o.touched = true
			step.Actions = append(step.Actions, ownership.AdoptPod(o.Pod, p.Owner, p.missingLabels(o.State), "its label is missing"))
		}
	}
	p.plan.Add(step)
}
