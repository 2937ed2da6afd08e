package plan

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/action"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/newpod"
	"github.com/flotilla-project/flotilla/core/podstate"
	"github.com/flotilla-project/flotilla/core/revision"
)

const (
	idAlphabet = "bcdfghjklmnpqrstvwxz2456789"
	idLength   = 5
	// maxLabelValue is the longest label value that Kubernetes takes.
	maxLabelValue = 63
)

// freshID is an instance id that no pod and no claim of the set has.
func (p *pass) freshID() string {
	if p.usedIDs == nil {
		p.usedIDs = p.idsInUse()
	}
	id := make([]byte, idLength)
	for {
		for i := range id {
			id[i] = idAlphabet[p.rng.IntN(len(idAlphabet))]
		}
		if !p.usedIDs[string(id)] {
			p.usedIDs[string(id)] = true
			return string(id)
		}
	}
}

// idOf is the instance id of a pod that has lost its label: the one in its name, which its claims have
// too, or a fresh one where the name tells of none that pods have not taken.
func (p *pass) idOf(o *corev1.Pod, taken map[string]bool) string {
	id, ok := strings.CutPrefix(o.Name, p.Set.Name+"-")
	if !ok || len(id) != idLength || strings.Trim(id, idAlphabet) != "" || taken[id] {
		return p.freshID()
	}
	return id
}

// idsOfPods are the instance ids that pods have.
func (p *pass) idsOfPods() map[string]bool {
	ids := make(map[string]bool, len(p.Snapshot.Pods)+len(p.Orphans))
	for _, list := range [][]*corev1.Pod{p.Snapshot.Pods, p.Orphans} {
		for _, o := range list {
			ids[o.Labels[contract.InstanceIDLabel]] = true
		}
	}
	return ids
}

func (p *pass) idsInUse() map[string]bool {
	used := p.idsOfPods()
	for _, claim := range p.Claims {
		used[claim.Labels[contract.InstanceIDLabel]] = true
	}
	return used
}

// newPod creates a pod of the revision, after its claims. With claims reused, it takes the id of
// claims without a pod when there are any.
func (p *pass) newPod(from *appsv1.ControllerRevision) (action.Action, error) {
	template, err := p.revisions.Template(from)
	if err != nil {
		return action.Action{}, err
	}
	id := p.nextID()
	labels := p.revisionLabels(from.Name)
	labels[contract.InstanceIDLabel] = id
	o := newpod.Of(template, newpod.Options{
		Name: p.Set.Name + "-" + id, GenerateName: p.Set.Name + "-", Namespace: p.Set.Namespace,
		Owner: controllerRef(p.Set), Labels: labels, Absent: revision.PullAlways, Lifecycle: true,
		Gates: []corev1.PodConditionType{contract.InPlaceUpdateReady, contract.KruisePodReady}, Now: p.Now,
	})
	claims := p.claimsOf(id)
	mounts := make([]newpod.Mount, 0, len(claims))
	for i := range claims {
		mounts = append(mounts, newpod.Mount{Volume: p.Set.Spec.VolumeClaimTemplates[i].Name, Claim: claims[i].Name})
	}
	newpod.MountClaims(o, mounts...)
	a := action.Action{
		Verb: action.Create, Object: o, MadeUpName: true, Reason: "ScaleOut", Message: "revision " + podstate.ShortHash(from.Name),
		Event: &action.Event{Succeeded: eventCreated, Note: "succeed to create pod " + o.Name, Failed: eventCreateFailed},
	}
	for _, claim := range claims {
		a.First = append(a.First, claim)
	}
	return a, nil
}

// nextID is the id of the next pod.
func (p *pass) nextID() string {
	if p.Set.Spec.ScaleStrategy.EnablePVCReuse {
		if id, ok := p.freeID(); ok {
			return id
		}
	}
	return p.freshID()
}
