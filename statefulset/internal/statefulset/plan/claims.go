package plan

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/newpod"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

const (
	// writtenCheck is when claims are looked at again that were written for pods that wait for them.
	writtenCheck = time.Second
	// goneCheck is when claims are looked at again that are on their way out, should no event report their end.
	goneCheck = 10 * time.Second
)

// checkWrittenClaims has claims that pods wait for looked at again soon after this pass has written them. Claims that it
// does not write, because the server has refused them or what comes before them, wait for the end of that pause.
func (p *pass) checkWrittenClaims() {
	if p.claimsFirst && slices.ContainsFunc(p.plan.Steps, func(s action.Step) bool { return s.Name == stepClaims }) {
		p.plan.RequeueWithin(writtenCheck)
	}
}

// claimName is the name of the claim that a pod has from a template.
func claimName(template *corev1.PersistentVolumeClaim, pod string) string {
	return template.Name + "-" + pod
}

// isClaimName reports whether claim is that name, without making it.
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

// mounts are the volumes that a pod has from the claim templates, and from those that were removed.
func (p *pass) mounts(name string, former []string) []newpod.Mount {
	var mounts []newpod.Mount
	for i := range p.Set.Spec.VolumeClaimTemplates {
		t := &p.Set.Spec.VolumeClaimTemplates[i]
		mounts = append(mounts, newpod.Mount{Volume: t.Name, Claim: claimName(t, name)})
	}
	for _, volume := range former {
		mounts = append(mounts, newpod.Mount{Volume: volume, Claim: volume + "-" + name})
	}
	return mounts
}

// claimsFor are the claims that are to be created before the pod, and the first one that it has to wait for; nil for none.
func (p *pass) claimsFor(name string) (missing []action.Object, blocking *corev1.PersistentVolumeClaim) {
	for i := range p.Set.Spec.VolumeClaimTemplates {
		t := &p.Set.Spec.VolumeClaimTemplates[i]
		switch claim := p.Claim(claimName(t, name)); {
		case claim == nil:
			missing = append(missing, p.newClaim(t, name))
		case p.isBlocked(claim, name):
			return nil, claim
		}
	}
	return missing, nil
}

// formerClaims finds, for a new pod of the name and volumes with a removed claim template, the first claim that it has to
// wait for, or the first volume without a claim: former pods of its ordinal have left them, and no other claim could take
// their place.
func (p *pass) formerClaims(name string, volumes []string) (blocking *corev1.PersistentVolumeClaim, lost string) {
	for _, volume := range volumes {
		switch claim := p.Claim(volume + "-" + name); {
		case claim == nil:
			return nil, volume
		case p.isBlocked(claim, name):
			return claim, ""
		}
	}
	return nil, ""
}

// isBlocked reports whether no new pod of the name may mount the claim: it is on its way out, or goes with a former pod.
func (p *pass) isBlocked(claim *corev1.PersistentVolumeClaim, name string) bool {
	return claim.DeletionTimestamp != nil || p.hasFormerPod(claim, name)
}

// awaitClaim holds the pod of the ordinal until it may mount the claim.
func (p *pass) awaitClaim(s *slot, claim *corev1.PersistentVolumeClaim) {
	s.held = true
	name := podName(p.Set.Name, s.ordinal)
	switch {
	case claim.DeletionTimestamp != nil:
		p.plan.RequeueWithin(goneCheck)
		p.plan.Wait(WaitClaimGoing, claim.Name, "pvc %s is to be deleted; pod %s is created once it is gone", claim.Name, name)
	case !p.deletesWithScale():
		p.retainClaim(claim, name)
	default:
		p.plan.RequeueWithin(goneCheck)
		p.plan.Wait(WaitStaleClaim, claim.Name, "PVC %s is deleted together with the previous pod %s; the new pod is created after that", claim.Name, name)
	}
}

// claimless is a pod that cannot be created: it lacks a claim, and the claim template was removed.
type claimless struct{ pod, volume string }

// explainClaimless reports which pods cannot be created, and how they can be.
func (p *pass) explainClaimless() {
	if len(p.claimless) == 0 {
		return
	}
	first := p.claimless[0]
	names := make([]string, len(p.claimless))
	for i := range p.claimless {
		names[i] = p.claimless[i].pod
	}
	p.plan.Wait(WaitClaimTemplateRemoved, first.pod, "pods are not created: %s. Their revision mounts volume %s, its claim template was removed, and PVC %s-%s is missing: "+
		"add the claim template again, create the PVC, or lower the partition", firstOf(names), first.volume, first.volume, first.pod)
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
	claim := newpod.ClaimFromTemplate(t, o)
	if p.FeatureGates.AutoDeletePVC && p.deletesWithScale() {
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, v1beta1.DeleteWhenScaledAnnotation, string(p.Set.UID))
	}
	return claim
}

// createMissingClaims creates claims that pending pods miss: a pod without its claim could not start. Pods that are
// about to go need none.
func createMissingClaims(p *pass) {
	step := action.Step{Name: stepClaims}
	for i := range p.pods {
		o := &p.pods[i]
		if o.Pod.Status.Phase != corev1.PodPending || !o.Active || o.foreign || !o.hasVolumes || !o.live || o.leaving {
			continue
		}
		for k := range p.Set.Spec.VolumeClaimTemplates {
			t := &p.Set.Spec.VolumeClaimTemplates[k]
			if p.Claim(claimName(t, o.Pod.Name)) != nil {
				continue
			}
			step.Actions = append(step.Actions, action.Action{
				Verb:    action.Create,
				Object:  p.newClaim(t, o.Pod.Name),
				Reason:  "ClaimMissing",
				Message: "pod " + o.Pod.Name + " is pending without it",
				Event: &action.Event{
					Succeeded: EventCreated,
					Failed:    EventCreateFailed,
					Note:      "Created PVC " + claimName(t, o.Pod.Name) + " for pod " + o.Pod.Name + " in StatefulSet " + p.Set.Name,
				},
			})
		}
	}
	p.plan.Add(step)
}
