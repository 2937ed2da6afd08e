package plan

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/action"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/newpod"
	"github.com/flotilla-project/flotilla/core/ownership"
)

// claimsOf are the claims of the instance, made from spec.volumeClaimTemplates.
func (p *pass) claimsOf(id string) []*corev1.PersistentVolumeClaim {
	templates := p.Set.Spec.VolumeClaimTemplates
	claims := make([]*corev1.PersistentVolumeClaim, 0, len(templates))
	labels := []map[string]string{{contract.InstanceIDLabel: id}}
	if s := p.Set.Spec.Selector; s != nil {
		labels = slices.Insert(labels, 0, s.MatchLabels)
	}
	for i := range templates {
		claims = append(claims, newpod.Claim(&templates[i], newpod.ClaimOptions{
			Name: templates[i].Name + "-" + p.Set.Name + "-" + id, Namespace: p.Set.Namespace,
			Labels: labels, Owners: []metav1.OwnerReference{controllerRef(p.Set)},
		}))
	}
	return claims
}

// freeID is the id of claims without a pod, and whether there is one. Each is given out once.
func (p *pass) freeID() (string, bool) {
	if p.freeIDs == nil {
		taken := map[string]bool{"": true}
		for _, o := range slices.Concat(p.Snapshot.Pods, p.Orphans) {
			taken[o.Labels[contract.InstanceIDLabel]] = true
		}
		p.freeIDs = []string{}
		for _, claim := range p.Claims {
			id := claim.Labels[contract.InstanceIDLabel]
			if !taken[id] && claim.DeletionTimestamp == nil {
				taken[id] = true
				p.freeIDs = append(p.freeIDs, id)
			}
		}
	}
	if len(p.freeIDs) == 0 {
		return "", false
	}
	id := p.freeIDs[0]
	p.freeIDs = p.freeIDs[1:]
	return id, true
}

// claimsWith are the claims of the instance that are not on their way out. No claim belongs to a pod
// without an id.
func (p *pass) claimsWith(id string) []*corev1.PersistentVolumeClaim {
	if p.claims == nil {
		p.claims = map[string][]*corev1.PersistentVolumeClaim{}
		for _, claim := range p.Claims {
			if claim.DeletionTimestamp == nil {
				owner := claim.Labels[contract.InstanceIDLabel]
				p.claims[owner] = append(p.claims[owner], claim)
			}
		}
		delete(p.claims, "")
	}
	return p.claims[id]
}

// cleanClaims ends claims whose pod is gone, unless scaleStrategy.enablePVCReuse keeps them: a claim
// of a pod that is on its way out goes to that pod and with it, any other is deleted. A claim
// without an instance id belongs to no pod and is left alone.
func cleanClaims(p *pass) {
	if p.Set.Spec.ScaleStrategy.EnablePVCReuse || len(p.Claims) == 0 {
		return
	}
	active := map[string]bool{"": true}
	for i := range p.pods {
		active[p.pods[i].Pod.Labels[contract.InstanceIDLabel]] = true
	}
	for _, o := range p.Orphans {
		active[o.Labels[contract.InstanceIDLabel]] = true
	}
	leaving := map[string]*corev1.Pod{}
	for i := range p.inactive {
		leaving[p.inactive[i].Pod.Labels[contract.InstanceIDLabel]] = p.inactive[i].Pod
	}
	step := action.Step{Name: StepClaims}
	for _, claim := range p.Claims {
		id := claim.Labels[contract.InstanceIDLabel]
		if active[id] || claim.DeletionTimestamp != nil {
			continue
		}
		if o := leaving[id]; o != nil {
			step.Actions = append(step.Actions, p.handOver(claim, o))
			continue
		}
		step.Actions = append(step.Actions, action.Action{
			Verb: action.Delete, Object: claim, Reason: "PodGone", Message: "no pod has its instance id",
			Event: &action.Event{Failed: eventDeleteFailed},
		})
	}
	p.plan.Add(step)
}

// handOver makes the pod the owner of the claim in place of the set.
func (p *pass) handOver(claim *corev1.PersistentVolumeClaim, o *corev1.Pod) action.Action {
	return action.Action{
		Verb: action.Release, Object: claim, Reason: "PodLeaving", Message: "it goes with pod " + o.Name,
		Patches: []action.Patch{ownership.Patch([]types.UID{p.Set.UID}, ownership.ByPod(o))},
		Event:   &action.Event{Failed: eventFailedUpdate},
	}
}
