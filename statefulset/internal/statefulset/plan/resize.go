package plan

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/action"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// storage says how far the claims of a pod follow their templates, where the strategy makes them.
type storage struct {
	small   []*corev1.PersistentVolumeClaim // claims to grow
	wants   []*corev1.PersistentVolumeClaim // the templates of those
	unready bool                            // a claim has not got what it asks for
	open    string                          // a claim that grows and is not done: its pod is not to be touched
	unmade  string                          // a claim whose file system grows when it is mounted anew
	trouble *trouble                        // why a claim cannot follow
}

// trouble is why a claim cannot follow its template.
type trouble struct {
	claim   string
	event   string
	message string
}

// growsClaims says whether claims grow with their templates.
func (p *pass) growsClaims() bool {
	return p.Gates.AutoResizePVC && p.Set.Spec.VolumeClaimUpdateStrategy.Type == v1beta1.OnPodRollingUpdate
}

// judgeClaims looks at the claims of a pod, where they grow. One that is missing or on its way out is
// left out.
func (p *pass) judgeClaims(name string) storage {
	var s storage
	if !p.growsClaims() {
		return s
	}
	for i := range p.Set.Spec.VolumeClaimTemplates {
		t := &p.Set.Spec.VolumeClaimTemplates[i]
		claim := p.Claim(claimName(t, name))
		if claim == nil || claim.DeletionTimestamp != nil {
			continue
		}
		if !isReady(claim) {
			s.unready = true
			if awaitsMount(claim) {
				s.unmade = claim.Name
			} else {
				s.open = claim.Name
			}
		}
		switch {
		case !sameKind(claim, t):
			s.trouble = &trouble{claim.Name, eventClaimDiffers, fmt.Sprintf(
				"claim %s differs from its template in more than its size; delete it to have it made anew", claim.Name)}
		case isSmall(claim, t):
			if text := p.cannotGrow(claim, t); text != "" {
				s.trouble = &trouble{claim.Name, eventResizeFailed, text}
				continue
			}
			s.small, s.wants = append(s.small, claim), append(s.wants, t)
		}
	}
	return s
}

// sameKind compares class and access modes. An absent class is any class.
func sameKind(claim, t *corev1.PersistentVolumeClaim) bool {
	a, b := claim.Spec.StorageClassName, t.Spec.StorageClassName
	return (a == nil || b == nil || *a == *b) && slices.Equal(claim.Spec.AccessModes, t.Spec.AccessModes)
}

// isSmall says that the claim asks for less than its template. One that asks for more keeps what it has.
func isSmall(claim, t *corev1.PersistentVolumeClaim) bool {
	has := requested(claim)
	return has.Cmp(requested(t)) < 0
}

// isReady says that the claim has what it asks for.
func isReady(claim *corev1.PersistentVolumeClaim) bool {
	has := claim.Status.Capacity[corev1.ResourceStorage]
	return has.Cmp(requested(claim)) >= 0
}

// awaitsMount says that the volume has grown and that its file system grows when it is mounted.
func awaitsMount(claim *corev1.PersistentVolumeClaim) bool {
	return slices.ContainsFunc(claim.Status.Conditions, func(c corev1.PersistentVolumeClaimCondition) bool {
		return c.Type == corev1.PersistentVolumeClaimFileSystemResizePending && c.Status == corev1.ConditionTrue
	})
}

func requested(claim *corev1.PersistentVolumeClaim) resource.Quantity {
	return claim.Spec.Resources.Requests[corev1.ResourceStorage]
}

// cannotGrow says why the claim's class lets no volume grow; empty when it does. A template without a
// class is not asked.
func (p *pass) cannotGrow(claim, t *corev1.PersistentVolumeClaim) string {
	class := t.Spec.StorageClassName
	if class == nil {
		return ""
	}
	switch expandable, exists := p.Expandable[*class]; {
	case !exists:
		return fmt.Sprintf("claim %s cannot grow: storage class %s does not exist", claim.Name, *class)
	case !expandable:
		return fmt.Sprintf("claim %s cannot grow: storage class %s does not support volume expansion", claim.Name, *class)
	}
	return ""
}

// growFor begins to grow the claims of the pod. Until they are done the pod counts as out of service and
// is left alone.
func (p *pass) growFor(o *pod) {
	for i, claim := range o.claims.small {
		p.grow = append(p.grow, action.Action{
			Verb: action.PatchSpec, Object: claim, Reason: "Resize", Message: "its template asks for more",
			Patches: []action.Patch{{Type: types.MergePatchType, Body: map[string]any{
				"metadata": map[string]any{"annotations": map[string]any{v1beta1.OwnedByAnnotation: p.Set.Name}},
				"spec":     map[string]any{"resources": resourcesOf(o.claims.wants[i])},
			}}},
			Event: &action.Event{
				Succeeded: eventResized, Failed: eventResizeFailed,
				Note: "resize Claim " + claim.Name + " Pod " + o.Pod.Name + " in StatefulSet " + p.Set.Name + " successful",
			},
		})
	}
}

// resourcesOf is the resources of a template as JSON has them.
func resourcesOf(t *corev1.PersistentVolumeClaim) map[string]any {
	all := map[string]any{}
	for name, list := range map[string]corev1.ResourceList{"requests": t.Spec.Resources.Requests, "limits": t.Spec.Resources.Limits} {
		if len(list) == 0 {
			continue
		}
		quantities := map[string]any{}
		for resourceName, q := range list {
			quantities[string(resourceName)] = q.String()
		}
		all[name] = quantities
	}
	return all
}

// growClaims writes the claims that grow, and tells of those that cannot.
func growClaims(p *pass) {
	p.plan.Add(action.Step{Name: StepClaims, Actions: p.grow})
	for _, o := range p.targets {
		switch c := o.claims; {
		case c.trouble != nil:
			p.plan.Wait(waitResizeFailed, c.trouble.claim, "%s", c.trouble.message)
		case c.open != "":
			p.plan.Wait(waitResize, c.open, "claim %s grows; pod %s waits for it", c.open, o.Pod.Name)
		case c.unmade != "" && o.arrived():
			p.plan.Wait(waitResize, c.unmade, "the file system of claim %s grows once pod %s is replaced, unless the driver grows it before", c.unmade, o.Pod.Name)
		}
	}
}
