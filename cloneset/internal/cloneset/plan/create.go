package plan

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/newpod"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

const (
	idAlphabet = "bcdfghjklmnpqrstvwxz2456789"
	idLength   = 5
)

// newID is an instance id that no pod and no claim of the set has.
func (p *pass) newID() string {
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

// idForAdopted is the instance id of a pod that has lost its label: the id of its claims, else the id in its name,
// else, or if another pod has that id, a fresh one. Each is given out once.
func (p *pass) idForAdopted(o *corev1.Pod) string {
	if p.takenIDs == nil {
		p.takenIDs = map[string]bool{"": true}
		for _, other := range slices.Concat(p.Snapshot.Pods, p.Orphans) {
			p.takenIDs[other.Labels[contract.InstanceIDLabel]] = true
		}
	}
	id := p.formerID(o)
	if p.takenIDs[id] {
		id = p.newID()
	}
	p.takenIDs[id] = true
	return id
}

// formerID is the id that the pod seems to have had, empty if neither its claims nor its name show one.
func (p *pass) formerID(o *corev1.Pod) string {
	for name := range mounted(o) {
		if claim := p.Claim(name); claim != nil && claim.Labels[contract.InstanceIDLabel] != "" {
			return claim.Labels[contract.InstanceIDLabel]
		}
	}
	return p.idInName(o)
}

// idInName is the id with which the pod's name ends, empty where it is not made of one. Pods that OpenKruise has created
// have the whole name of a set before it, however long.
func (p *pass) idInName(o *corev1.Pod) string {
	for _, prefix := range []string{newpod.NamePrefix(p.Set.Name), p.Set.Name + "-"} {
		if id, ok := strings.CutPrefix(o.Name, prefix); ok && len(id) == idLength && strings.Trim(id, idAlphabet) == "" {
			return id
		}
	}
	return ""
}

// idsInUse are the instance ids of pods and claims, and those in the names of pods that have lost theirs.
func (p *pass) idsInUse() map[string]bool {
	used := map[string]bool{}
	for _, o := range slices.Concat(p.Snapshot.Pods, p.Orphans) {
		used[o.Labels[contract.InstanceIDLabel]] = true
		used[p.idInName(o)] = true
	}
	for _, claim := range p.Claims {
		used[claim.Labels[contract.InstanceIDLabel]] = true
	}
	return used
}

// newPod creates a pod of the revision, after its claims. With claims reused, it takes the id of claims without a pod
// when there are any. It is nil if the revision mounts a volume with a removed claim template, and no claim for it is
// free.
func (p *pass) newPod(from *appsv1.ControllerRevision) (*action.Action, error) {
	template, err := p.revisions.Template(from)
	if err != nil {
		return nil, err
	}
	former := p.formerVolumes(template)
	id, ok := p.nextID(former)
	if !ok {
		p.claimless = append(p.claimless, former[0])
		return nil, nil //nolint:nilnil // no pod is no failure
	}
	labels := p.revisionLabels(from.Name)
	labels[contract.InstanceIDLabel] = id
	o := newpod.FromTemplate(template, newpod.Options{
		Name:              p.podName(id),
		GenerateName:      newpod.NamePrefix(p.Set.Name),
		Namespace:         p.Set.Namespace,
		Owner:             p.Owner,
		Labels:            labels,
		DefaultPullPolicy: DefaultPullPolicy,
		Lifecycle:         true,
		ReadinessGates:    []corev1.PodConditionType{contract.InPlaceUpdateReady, contract.KruisePodReady},
		Now:               p.Now,
	})
	claims := p.claimsOf(id)
	mounts := make([]newpod.Mount, 0, len(claims))
	for i := range claims {
		mounts = append(mounts, newpod.Mount{Volume: p.Set.Spec.VolumeClaimTemplates[i].Name, Claim: claims[i].Name})
	}
	for _, volume := range former {
		mounts = append(mounts, newpod.Mount{Volume: volume, Claim: p.claimName(volume, id)})
	}
	newpod.MountClaims(o, mounts...)
	a := &action.Action{
		Verb:          action.Create,
		Object:        o,
		GeneratedName: true,
		Independent:   true,
		Reason:        "ScaleOut",
		Message:       "revision " + podstate.ShortHash(from.Name),
		Event: &action.Event{
			Succeeded: EventCreated,
			Note:      "succeed to create pod " + o.Name,
			Failed:    EventCreateFailed,
		},
	}
	for _, claim := range claims {
		a.Prerequisites = append(a.Prerequisites, claim)
	}
	return a, nil
}

func (p *pass) podName(id string) string { return newpod.NamePrefix(p.Set.Name) + id }

// nextID is the id of the next pod, and whether there is one: a pod that mounts former volumes, the volumes with a
// removed claim template, takes only an id that has the claims.
func (p *pass) nextID(former []string) (string, bool) {
	if p.Set.Spec.ScaleStrategy.EnablePVCReuse {
		if id, ok := p.nextReusableID(former); ok {
			return id, true
		}
	}
	if len(former) > 0 {
		return "", false
	}
	return p.newID(), true
}

// explainClaimless reports how many pods cannot be created, and how they can be.
func (p *pass) explainClaimless(from *appsv1.ControllerRevision) {
	if n := len(p.claimless); n > 0 {
		p.plan.Wait(WaitClaimTemplateRemoved, "", "%d pods of revision %s cannot be created: the claim template of volume %s was removed, and all its PVCs are in use. "+
			"Add the claim template again, or lower partition", n, podstate.ShortHash(from.Name), p.claimless[0])
	}
}
