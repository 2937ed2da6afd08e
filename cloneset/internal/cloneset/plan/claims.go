package plan

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/action"
	"github.com/flotilla-project/flotilla/core/contract"
)

// claimsOf are the claims of the instance, made from spec.volumeClaimTemplates.
func (p *pass) claimsOf(id string) []*corev1.PersistentVolumeClaim {
	templates := p.Set.Spec.VolumeClaimTemplates
	claims := make([]*corev1.PersistentVolumeClaim, 0, len(templates))
	for i := range templates {
		claim := templates[i].DeepCopy()
		labels := copyOf(claim.Labels)
		if p.Set.Spec.Selector != nil {
			maps.Copy(labels, p.Set.Spec.Selector.MatchLabels)
		}
		labels[contract.InstanceIDLabel] = id
		claims = append(claims, &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{
				Name:            claim.Name + "-" + p.Set.Name + "-" + id,
				Namespace:       p.Set.Namespace,
				Labels:          labels,
				Annotations:     claim.Annotations,
				OwnerReferences: []metav1.OwnerReference{controllerRef(p.Set)},
			},
			Spec: claim.Spec,
		})
	}
	return claims
}

// withClaims puts one volume for each claim before the template's volumes; a volume of the template
// with the name of a claim template gives way.
func withClaims(volumes []corev1.Volume, claims []*corev1.PersistentVolumeClaim, templates []corev1.PersistentVolumeClaim) []corev1.Volume {
	if len(claims) == 0 {
		return volumes
	}
	named := map[string]bool{}
	all := make([]corev1.Volume, 0, len(claims)+len(volumes))
	for i := range claims {
		named[templates[i].Name] = true
		all = append(all, corev1.Volume{Name: templates[i].Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claims[i].Name},
		}})
	}
	for i := range volumes {
		if !named[volumes[i].Name] {
			all = append(all, volumes[i])
		}
	}
	return all
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
		Patches: []action.Patch{{Body: map[string]any{"metadata": map[string]any{"ownerReferences": []any{
			map[string]any{"$patch": "delete", "uid": string(p.Set.UID)},
			map[string]any{"apiVersion": "v1", "kind": "Pod", "name": o.Name, "uid": string(o.UID)},
		}}}}},
		Event: &action.Event{Failed: eventFailedUpdate},
	}
}
