package plan

import (
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/eligibility"
	"github.com/flotilla-project/flotilla/core/pods/newpod"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

const (
	nameAlphabet = "bcdfghjklmnpqrstvwxz2456789"
	nameLength   = 5

	// directScheduler is the scheduler name of pods that are created with their node: no scheduler has it.
	directScheduler = "kubernetes.io/daemonset-controller"
)

// createPod creates a pod for the node and reports whether it does. All of them, also in a surge, are alike and
// in one step: if the server refuses one, all are suspected.
func (p *pass) createPod(l *place) bool {
	from := p.target(l)
	if from == nil {
		return false
	}
	template, err := p.workload.Revisions.Template(from)
	if err != nil {
		p.plan.Err = err
		return false
	}
	if !spend(&p.creates, &p.left.creations) {
		return false
	}
	l.creating = true
	o := newpod.FromTemplate(template, newpod.Options{
		Name:              p.newName(),
		GenerateName:      newpod.NamePrefix(p.Set.Name),
		Namespace:         p.Set.Namespace,
		Owner:             p.Owner,
		Labels:            p.newLabels(from),
		DefaultPullPolicy: DefaultPullPolicy,
		ReadinessGates:    p.readinessGates(),
		Now:               p.Now,
	})
	o.Spec.Tolerations = eligibility.WithDefaults(o.Spec.Tolerations, o.Spec.HostNetwork)
	if p.FeatureGates.AssignDirectly {
		o.Spec.NodeName, o.Spec.SchedulerName = l.name, directScheduler
	} else {
		eligibility.Pin(&o.Spec, l.name)
	}
	if p.FeatureGates.AutoscalerAnnotation {
		o.Annotations[contract.AutoscalerDaemonSetPodAnnotation] = "true"
	}
	p.creates.Actions = append(p.creates.Actions, action.Action{
		Verb:          action.Create,
		Object:        o,
		GeneratedName: true,
		Independent:   true,
		Reason:        "ScaleOut",
		Message:       "revision " + podstate.ShortHash(from.Name) + " on node " + l.name,
		Event: &action.Event{
			Succeeded: EventCreated,
			Failed:    EventCreateFailed,
			Note:      "Created pod " + o.Name,
		},
	})
	return true
}

// newName is a name that no pod of the set has.
func (p *pass) newName() string {
	if p.takenNames == nil {
		p.takenNames = make(map[string]bool, len(p.pods))
		for i := range p.pods {
			p.takenNames[p.pods[i].Pod.Name] = true
		}
	}
	prefix := newpod.NamePrefix(p.Set.Name)
	id := make([]byte, nameLength)
	for {
		for i := range id {
			id[i] = nameAlphabet[p.rng.IntN(len(nameAlphabet))]
		}
		if name := prefix + string(id); !p.takenNames[name] {
			p.takenNames[name] = true
			return name
		}
	}
}
