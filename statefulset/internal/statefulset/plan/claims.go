package plan

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/newpod"
)

const (
	// ownersCheck is when claims are looked at again that are getting other owners.
	ownersCheck = time.Second
	// goneCheck is when claims are looked at again that are on their way out, should no event tell.
	goneCheck = 10 * time.Second
)

// claimName is the name of the claim that a pod has from a template.
func claimName(template *corev1.PersistentVolumeClaim, pod string) string {
	return template.Name + "-" + pod
}

// isClaimName says the same without making the name.
func isClaimName(claim, template, pod string) bool {
	rest, ok := strings.CutPrefix(claim, template)
	return ok && len(rest) == len(pod)+1 && rest[0] == '-' && rest[1:] == pod
}

// hasStorage reports whether the pod has the volume of every claim template. Volumes never change on a
// pod that exists: one without them is recreated by the update, in its order.
func hasStorage(o *corev1.Pod, templates []corev1.PersistentVolumeClaim) bool {
	for i := range templates {
		found := false
		for k := range o.Spec.Volumes {
			v := &o.Spec.Volumes[k]
			if v.Name == templates[i].Name && v.PersistentVolumeClaim != nil &&
				isClaimName(v.PersistentVolumeClaim.ClaimName, templates[i].Name, o.Name) {
				found = true
				break
			}
		}
		if !found {
			return false
		}
	}
	return true
}

// mounts are the volumes that a pod has from the claim templates.
func (p *pass) mounts(name string) []newpod.Mount {
	var mounts []newpod.Mount
	for i := range p.Set.Spec.VolumeClaimTemplates {
		t := &p.Set.Spec.VolumeClaimTemplates[i]
		mounts = append(mounts, newpod.Mount{Volume: t.Name, Claim: claimName(t, name)})
	}
	return mounts
}

// claimsFor are the claims that are to be created before the pod, and whether the pod may be created at
// all: not while one of its claims is on its way out.
func (p *pass) claimsFor(name string) (missing []action.Object, ok bool) {
	for i := range p.Set.Spec.VolumeClaimTemplates {
		t := &p.Set.Spec.VolumeClaimTemplates[i]
		claim := p.Claim(claimName(t, name))
		switch {
		case claim == nil:
			missing = append(missing, p.newClaim(t, name))
		case claim.DeletionTimestamp != nil:
			p.plan.RequeueWithin(goneCheck)
			p.plan.Wait(WaitClaimGoing, claim.Name, "pvc %s is to be deleted; pod %s is created once it is gone", claim.Name, name)
			return nil, false
		case p.hasFormerPod(claim, name) && !p.deletesWithScale():
			p.retainClaim(claim, name)
			return nil, false
		case p.hasFormerPod(claim, name):
			p.plan.RequeueWithin(goneCheck)
			p.plan.Wait(WaitStaleClaim, claim.Name, "claim %s goes with a former pod %s; the pod is created once it is gone", claim.Name, name)
			return nil, false
		default:
			p.noteConflict(claim)
		}
	}
	return missing, true
}

// newClaim is the claim that the pod has from the template.
func (p *pass) newClaim(t *corev1.PersistentVolumeClaim, name string) *corev1.PersistentVolumeClaim {
	o := newpod.ClaimOptions{Name: claimName(t, name), Namespace: p.Set.Namespace}
	if p.Set.Spec.Selector != nil {
		o.Labels = append(o.Labels, p.Set.Spec.Selector.MatchLabels)
	}
	if p.FeatureGates.AutoDeletePVC && p.deletesWithSet() {
		o.Owners = []metav1.OwnerReference{p.Owner}
	}
	return newpod.ClaimFromTemplate(t, o)
}

// createMissingClaims creates claims that pending pods miss: a pod whose claim was deleted could not start.
func createMissingClaims(p *pass) {
	step := action.Step{Name: stepClaims}
	for i := range p.pods {
		o := &p.pods[i]
		if o.Pod.Status.Phase != corev1.PodPending || !o.Active || o.foreign || !o.hasVolumes {
			continue
		}
		for k := range p.Set.Spec.VolumeClaimTemplates {
			t := &p.Set.Spec.VolumeClaimTemplates[k]
			if p.Claim(claimName(t, o.Pod.Name)) != nil {
				continue
			}
			step.Actions = append(step.Actions, action.Action{
				Verb: action.Create, Object: p.newClaim(t, o.Pod.Name), Reason: "ClaimMissing", Message: "pod " + o.Pod.Name + " is pending without it",
				Event: &action.Event{Succeeded: EventCreated, Failed: EventCreateFailed, Note: "create Claim " + claimName(t, o.Pod.Name) + " for Pod " + o.Pod.Name + " in StatefulSet " + p.Set.Name + " successful"},
			})
		}
	}
	p.plan.Add(step)
}
