package plan

import (
	"iter"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/newpod"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/workloads/ownership"
)

// claimWaitLimit is how long after its deletion should have been over a pod's claims and name are waited for.
const claimWaitLimit = time.Minute

// claimsOf are the claims of the instance, made from spec.volumeClaimTemplates.
func (p *pass) claimsOf(id string) []*corev1.PersistentVolumeClaim {
	templates := p.Set.Spec.VolumeClaimTemplates
	claims := make([]*corev1.PersistentVolumeClaim, 0, len(templates))
	labels := []map[string]string{{contract.InstanceIDLabel: id}}
	if s := p.Set.Spec.Selector; s != nil {
		labels = slices.Insert(labels, 0, s.MatchLabels)
	}
	for i := range templates {
		claims = append(claims, newpod.ClaimFromTemplate(&templates[i], newpod.ClaimOptions{
			Name:      p.claimName(templates[i].Name, id),
			Namespace: p.Set.Namespace,
			Labels:    labels,
			Owners:    []metav1.OwnerReference{p.Owner},
		}))
	}
	return claims
}

// claimName is the name of the instance's claim for a volume. It holds the whole name of the set, which a pod's name may
// not.
func (p *pass) claimName(volume, id string) string { return volume + "-" + p.Set.Name + "-" + id }

// formerVolumes are the volumes of a revision with a removed claim template.
func (p *pass) formerVolumes(template *corev1.PodTemplateSpec) []string {
	return newpod.FormerVolumes(&template.Spec, &p.Set.Spec.Template.Spec, p.Set.Spec.VolumeClaimTemplates)
}

// instance is a pod and its claims, as far as they exist.
type instance struct {
	id string
	// claims are the claims of the set with the id that are not being deleted, and the claims with the id that it is to
	// adopt; going is true if others are being deleted.
	claims []*corev1.PersistentVolumeClaim
	going  bool
	// pod is the pod that has the id or a claim of it, one that runs before one that has ended or is about to; runs is
	// true if it runs, shared if several do.
	pod          *corev1.Pod
	runs, shared bool
}

// claimIndex is an index of the set's claims. Those without an instance id are not in it.
type claimIndex struct {
	instances []instance // in the order of the claims
	byID      map[string]*instance
	byClaim   map[string]*instance
}

// claimIndex is the claim index of the pass. Pods use the claims that they mount and the claims with their id.
// Another client may have changed that id or taken it from them.
func (p *pass) claimIndex() *claimIndex {
	if p.index != nil {
		return p.index
	}
	claims := slices.Concat(p.Claims, p.ownerlessClaims())
	p.index = &claimIndex{
		instances: make([]instance, 0, len(claims)),
		byID:      make(map[string]*instance, len(claims)),
		byClaim:   make(map[string]*instance, len(claims)),
	}
	for _, claim := range claims {
		p.index.add(claim)
	}
	if len(claims) == 0 {
		return p.index
	}
	for _, list := range [][]*corev1.Pod{p.Snapshot.Pods, p.Orphans} {
		for _, o := range list {
			runs := podstate.Of(o, p.Now, 0).Active
			p.index.each(o, func(in *instance) { in.use(o, runs) })
		}
	}
	return p.index
}

// ownerlessClaims are the claims of pods, also of those to adopt, that have no owner: they were left behind with their
// pods. Each is the set's like its pod.
func (p *pass) ownerlessClaims() []*corev1.PersistentVolumeClaim {
	var found []*corev1.PersistentVolumeClaim
	for _, list := range [][]*corev1.Pod{p.Snapshot.Pods, p.Orphans} {
		for _, o := range list {
			for claim := range p.ownClaims(o) {
				if len(claim.OwnerReferences) == 0 && claim.DeletionTimestamp == nil {
					found = append(found, claim)
				}
			}
		}
	}
	return found
}

// ownClaims are the claims of the pod's own instance that it mounts, with any owner.
func (p *pass) ownClaims(o *corev1.Pod) iter.Seq[*corev1.PersistentVolumeClaim] {
	return func(yield func(*corev1.PersistentVolumeClaim) bool) {
		id := o.Labels[contract.InstanceIDLabel]
		for i := range o.Spec.Volumes {
			v := &o.Spec.Volumes[i]
			if id == "" || v.PersistentVolumeClaim == nil || v.PersistentVolumeClaim.ClaimName != p.claimName(v.Name, id) {
				continue
			}
			claim := p.Claim(v.PersistentVolumeClaim.ClaimName)
			if claim != nil && claim.Labels[contract.InstanceIDLabel] == id && !yield(claim) {
				return
			}
		}
	}
}

func (s *claimIndex) add(claim *corev1.PersistentVolumeClaim) {
	id := claim.Labels[contract.InstanceIDLabel]
	if id == "" {
		return
	}
	in := s.byID[id]
	if in == nil {
		s.instances = append(s.instances, instance{id: id}) // never more than there are claims: pointers stay good
		in = &s.instances[len(s.instances)-1]
		s.byID[id] = in
	}
	s.byClaim[claim.Name] = in
	if claim.DeletionTimestamp != nil {
		in.going = true
		return
	}
	in.claims = append(in.claims, claim)
}

// each visits the instances that the pod uses, each once.
func (s *claimIndex) each(o *corev1.Pod, visit func(*instance)) {
	own := s.byID[o.Labels[contract.InstanceIDLabel]]
	if own != nil {
		visit(own)
	}
	last := own
	for name := range mounted(o) {
		if in := s.byClaim[name]; in != nil && in != own && in != last {
			visit(in)
			last = in
		}
	}
}

// mounted are the names of the claims that the pod mounts.
func mounted(o *corev1.Pod) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range o.Spec.Volumes {
			if c := o.Spec.Volumes[i].PersistentVolumeClaim; c != nil && !yield(c.ClaimName) {
				return
			}
		}
	}
}

func (in *instance) use(o *corev1.Pod, runs bool) {
	switch {
	case in.runs && runs && in.pod != o:
		in.shared = true
	case !in.runs:
		in.pod, in.runs = o, runs
	}
}

// reusableIDs are the ids of claims without a pod, and the pods on their way out: new pods wait for their ids and
// names. A pod that does not go in time is not waited for, nor one that has failed and stays. An instance that lost a
// claim to another owner is left alone: a new pod would mount that claim, and the claim goes. An instance with its
// pod named in podsToDelete is left alone too, as a new pod would be deleted again.
func (p *pass) reusableIDs() (free []string, held []*corev1.Pod) {
	stock := p.claimIndex()
	for i := range stock.instances {
		switch in := &stock.instances[i]; {
		case in.going || len(in.claims) == 0 || in.runs || !p.isComplete(in.id) || p.named[p.podName(in.id)]:
		case in.pod == nil:
			if p.TakenNames[p.podName(in.id)].IsZero() {
				free = append(free, in.id)
			}
		case p.timeUntilGone(in.pod) > 0:
			held = append(held, in.pod)
		}
	}
	return free, held
}

// isComplete reports whether each claim of the instance is the set's, or absent.
func (p *pass) isComplete(id string) bool {
	templates := p.Set.Spec.VolumeClaimTemplates
	return !slices.ContainsFunc(templates, func(t corev1.PersistentVolumeClaim) bool {
		claim := p.Claim(p.claimName(t.Name, id))
		return claim != nil && !p.isFree(claim)
	})
}

// isFree reports whether a new pod may mount the claim.
func (p *pass) isFree(claim *corev1.PersistentVolumeClaim) bool {
	return claim.DeletionTimestamp == nil && metav1.IsControlledBy(claim, p.Set)
}

// timeUntilGone is how long the pod is waited for; 0 when it is not on its way out, or should be gone by now.
func (p *pass) timeUntilGone(o *corev1.Pod) time.Duration {
	if o.DeletionTimestamp == nil {
		return 0
	}
	return max(o.DeletionTimestamp.Add(claimWaitLimit).Sub(p.Now), 0)
}

// waitForClaims returns how many of n new pods wait for pods that are about to leave their claims to them.
func (p *pass) waitForClaims(n int32) int32 {
	if !p.Set.Spec.ScaleStrategy.EnablePVCReuse {
		return 0
	}
	free, held := p.reusableIDs()
	waits := min(max(n-int32(len(free)), 0), int32(len(held)))
	for _, o := range held[:waits] {
		p.plan.RequeueWithin(p.timeUntilGone(o))
		p.plan.Wait(WaitClaimsInUse, o.Name, "a new pod gets its PVCs and its name after its deletion")
	}
	return waits
}

// nextReusableID is the id of claims without a pod, and whether there is one that has claims for the former volumes,
// the volumes with a removed claim template. Each is given out once.
func (p *pass) nextReusableID(former []string) (string, bool) {
	if p.reusable == nil {
		free, _ := p.reusableIDs()
		p.reusable = append([]string{}, free...)
	}
	i := slices.IndexFunc(p.reusable, func(id string) bool {
		return !slices.ContainsFunc(former, func(volume string) bool {
			claim := p.Claim(p.claimName(volume, id))
			return claim == nil || !p.isFree(claim)
		})
	})
	if i < 0 {
		return "", false
	}
	id := p.reusable[i]
	p.reusable = slices.Delete(p.reusable, i, i+1)
	return id, true
}

// claimsUsedOnlyBy returns the claims that no other pod uses, as far as is known.
func (p *pass) claimsUsedOnlyBy(o *corev1.Pod) []*corev1.PersistentVolumeClaim {
	var claims []*corev1.PersistentVolumeClaim
	p.claimIndex().each(o, func(in *instance) {
		if in.pod != o || in.shared {
			return
		}
		for _, claim := range in.claims {
			if p.TakenNames[claim.Name].IsZero() {
				claims = append(claims, claim)
			}
		}
	})
	return claims
}

// deleteUnusedClaims deletes claims without a pod, unless scaleStrategy.enablePVCReuse keeps them: a claim of a pod
// that is on its way out goes to that pod and with it, any other is deleted. A pass that takes pods deletes none: the
// known pods may not be all. A claim also stays if the server reported that a pod of another owner mounts it.
func deleteUnusedClaims(p *pass) {
	if p.Set.Spec.ScaleStrategy.EnablePVCReuse {
		return
	}
	step := action.Step{Name: stepClaims}
	stock := p.claimIndex()
	for i := range stock.instances {
		in := &stock.instances[i]
		for _, claim := range in.claims {
			switch {
			case in.runs:
			case !p.TakenNames[claim.Name].IsZero():
				p.plan.RequeueWithin(p.TakenNames[claim.Name].Sub(p.Now))
			case in.pod != nil:
				step.Actions = append(step.Actions, p.giveToPod(claim, in.pod))
			case !p.adopting:
				step.Actions = append(step.Actions, action.Action{
					Verb:    action.Delete,
					Object:  claim,
					Guard:   action.Unmounted,
					Reason:  "PodGone",
					Message: "the pod of its instance id is gone",
					Event:   &action.Event{Failed: EventDeleteFailed},
				})
			}
		}
	}
	p.plan.Add(step)
}

// giveToPod makes the pod the owner of the claim in place of the set.
func (p *pass) giveToPod(claim *corev1.PersistentVolumeClaim, o *corev1.Pod) action.Action {
	return action.Action{
		Verb:    action.Release,
		Object:  claim,
		Reason:  "PodLeaving",
		Message: "it goes with pod " + o.Name,
		Guard:   action.Unmounted,
		ForPod:  o.UID,
		Patches: []action.Patch{ownership.ReferencesPatch([]types.UID{p.Set.UID}, ownership.PodReference(o))},
		Event:   &action.Event{Failed: EventUpdateFailed},
	}
}

// takeClaimsBack gives the set the claims of pods that stay: claims without an owner, and claims that were given to a
// pod which does not go after all, because its deletion was refused or is not wanted any more. They would be left
// behind, or go with the pod when it ends.
func (p *pass) takeClaimsBack() {
	step := action.Step{Name: stepClaims}
	for i := range p.pods {
		o := &p.pods[i]
		if o.touched || o.deleting || o.specified {
			continue
		}
		for claim := range p.ownClaims(o.Pod) {
			if isOwnedByPodAlone(claim, o.Pod) {
				step.Actions = append(step.Actions, action.Action{
					Verb:    action.Adopt,
					Object:  claim,
					Reason:  "PodStays",
					Message: "pod " + o.Pod.Name + " stays",
					Patches: []action.Patch{ownership.ReferencesPatch([]types.UID{o.Pod.UID}, p.Owner)},
					Event:   &action.Event{Failed: EventUpdateFailed},
				})
			}
		}
	}
	p.plan.Add(step)
}

// isOwnedByPodAlone reports whether the claim is to go with the pod, or has no owner.
func isOwnedByPodAlone(claim *corev1.PersistentVolumeClaim, o *corev1.Pod) bool {
	ownedByPod := slices.ContainsFunc(claim.OwnerReferences, func(ref metav1.OwnerReference) bool { return ref.UID == o.UID })
	return claim.DeletionTimestamp == nil && metav1.GetControllerOfNoCopy(claim) == nil && (ownedByPod || len(claim.OwnerReferences) == 0)
}
