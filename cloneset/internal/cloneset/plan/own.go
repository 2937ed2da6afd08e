package plan

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/workloads/ownership"
)

// release gives up pods with labels that the selector no longer matches; spec.selector rules ownership. Their claims
// go with them. Until the release has succeeded the pods count, but not as available.
func release(p *pass) {
	selector, err := metav1.LabelSelectorAsSelector(p.Set.Spec.Selector)
	if err != nil {
		return
	}
	step := action.Step{Name: stepOwn}
	for i := range p.pods {
		o := &p.pods[i]
		if selector.Matches(labels.Set(o.Pod.Labels)) {
			continue
		}
		o.touched, o.Available = true, false
		for _, claim := range p.claimsUsedOnlyBy(o.Pod) {
			p.handovers = append(p.handovers, p.giveToPod(claim, o.Pod))
		}
		step.Actions = append(step.Actions, ownership.Release(o.Pod, p.Set.UID, "its labels no longer match spec.selector"))
	}
	p.addWithHandovers(step)
}

// adopt takes pods without a controller that the selector matches, and gives the set's own pods back the
// instance id that they have lost: without it they are out of the operator's sight. The pods count at once, so that
// none is created in their place, but not as available.
func adopt(p *pass) {
	step := action.Step{Name: stepOwn}
	for i := range p.pods {
		if o := &p.pods[i]; !o.touched && o.Pod.Labels[contract.InstanceIDLabel] == "" {
			o.touched, o.Available = true, false
			step.Actions = append(step.Actions, p.adoptPod(o.Pod))
		}
	}
	for i := range p.inactive {
		if o := p.inactive[i].Pod; o.Labels[contract.InstanceIDLabel] == "" {
			step.Actions = append(step.Actions, p.adoptPod(o))
		}
	}
	for _, o := range p.Orphans {
		step.Actions = append(step.Actions, p.adoptPod(o))
		if adopted := p.inspect(o); adopted.Active {
			adopted.touched, adopted.Available = true, false
			p.pods = append(p.pods, adopted)
		}
	}
	p.adopting = len(step.Actions) > 0
	p.plan.Add(step)
}

// adoptPod makes the pod one of the set, with an instance id.
func (p *pass) adoptPod(o *corev1.Pod) action.Action {
	labels := map[string]string{}
	why := "it has no controller and matches spec.selector"
	if o.Labels[contract.InstanceIDLabel] == "" {
		labels[contract.InstanceIDLabel] = p.idForAdopted(o)
	}
	if metav1.IsControlledBy(o, p.Set) {
		why = "its instance id is missing"
	}
	return ownership.AdoptPod(o, p.Owner, labels, why)
}
