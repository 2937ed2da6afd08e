package plan

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/newpod"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/workloads/revision"
)

// createPod creates the pod of the ordinal after its claims, and reports whether it does: a claim that is
// about to go is awaited.
func (p *pass) createPod(step *action.Step, s *slot) bool {
	name := podName(p.Set.Name, s.ordinal)
	missing, blocking := p.claimsFor(name)
	if blocking != nil {
		p.awaitClaim(s, blocking)
		return false
	}
	from := p.revisionFor(s)
	if from == nil {
		return false
	}
	if from == p.Chosen.Current {
		p.oldPods++
	}
	template, err := p.workload.Revisions.Template(from)
	if err != nil {
		p.plan.Err = err
		return false
	}
	former := newpod.FormerVolumes(&template.Spec, &p.Set.Spec.Template.Spec, p.Set.Spec.VolumeClaimTemplates)
	switch blocking, lost := p.formerClaims(name, former); {
	case lost != "":
		s.held = true
		p.claimless = append(p.claimless, claimless{name, lost})
		return false
	case blocking != nil:
		p.awaitClaim(s, blocking)
		return false
	}
	mounts := p.mounts(name, former)
	p.noteConflicts(mounts)
	step.Actions = append(step.Actions, action.Action{
		Verb:          action.Create,
		Object:        p.newPod(name, from, template, mounts),
		Independent:   true,
		Prerequisites: missing,
		Reason:        "ScaleOut",
		Message:       "revision " + podstate.ShortHash(from.Name),
		Event: &action.Event{
			Succeeded: EventCreated,
			Failed:    EventCreateFailed,
			Note:      "Created pod " + name + " in StatefulSet " + p.Set.Name,
		},
	})
	return true
}

// newPod is the pod of the name from the template of a revision.
func (p *pass) newPod(name string, from *appsv1.ControllerRevision, template *corev1.PodTemplateSpec, mounts []newpod.Mount) *corev1.Pod {
	labels := p.identityLabels(name)
	maps.Copy(labels, revision.Labels(from.Name))
	o := newpod.FromTemplate(template, newpod.Options{
		Name:              name,
		GenerateName:      p.Set.Name + "-",
		Namespace:         p.Set.Namespace,
		Owner:             p.Owner,
		Labels:            labels,
		DefaultPullPolicy: DefaultPullPolicy,
		Lifecycle:         true,
		ReadinessGates:    readinessGates(),
		Now:               p.Now,
	})
	o.Spec.Hostname, o.Spec.Subdomain = name, p.Set.Spec.ServiceName
	newpod.MountClaims(o, mounts...)
	return o
}

func readinessGates() []corev1.PodConditionType {
	return []corev1.PodConditionType{contract.InPlaceUpdateReady, contract.KruisePodReady}
}

// revisionFor is the revision of a new pod.
//
// In order, the first partition ordinals are of the current revision. Unordered, the pod is of the
// current one as long as fewer than partition others are not updated. A pause plays no part.
//
//	live 0 2 3, partition 2: 0 and 2 current, 3 update.
//	unordered, 3 replicas, partition 1: update when one of the others is old, current when none is.
func (p *pass) revisionFor(s *slot) *appsv1.ControllerRevision {
	current, update := p.Chosen.Current, p.Chosen.Update
	old := false
	switch r := p.Set.Spec.UpdateStrategy.RollingUpdate; {
	case onDelete(p.Set):
	case r == nil:
		old = int64(s.ordinal) < int64(p.numbers.start)+int64(p.Set.Status.CurrentReplicas)
	case r.UnorderedUpdate == nil:
		old = s.rank < int(p.numbers.partition)
	default:
		old = p.oldPods < int(p.numbers.partition)
	}
	if old && current != nil {
		return current
	}
	return update
}

// countOldPods counts the live pods that are not at the update revision.
func (p *pass) countOldPods() int {
	n := 0
	for i := range p.slots {
		if o := p.slots[i].pod; o != nil && !p.countsAsUpdated(o) {
			n++
		}
	}
	return n
}
