package plan

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/workloads/podupdate"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// storage says how far the claims of a pod follow their templates, where the strategy makes them.
type storage struct {
	small    []*corev1.PersistentVolumeClaim // claims to grow
	wants    []*corev1.PersistentVolumeClaim // the templates of those
	open     string                          // a claim whose volume grows
	unmade   string                          // a claim whose file system grows when it is mounted anew
	remount  bool                            // only a new pod mounts such a claim anew
	unmarked []*corev1.PersistentVolumeClaim // claims that do not say yet for which pod that is so
	trouble  *trouble                        // why a claim cannot follow
}

// trouble is why a claim cannot follow its template.
type trouble struct {
	claim   string
	reason  string // of the wait
	event   string
	message string
}

// classesCheck is when storage classes are asked for again that could not be read.
const classesCheck = 10 * time.Second

// growsClaims says whether claims grow with their templates.
func (p *pass) growsClaims() bool {
	return p.Gates.AutoResizePVC && p.Set.Spec.VolumeClaimUpdateStrategy.Type == v1beta1.OnPodRollingUpdate
}

// judgeClaims looks at the claims of a pod, where they grow. One that is missing or on its way out is
// left out, and one without a volume can only differ from its template: no server lets it grow.
func (p *pass) judgeClaims(o *corev1.Pod) storage {
	var s storage
	if !p.growsClaims() {
		return s
	}
	for i := range p.Set.Spec.VolumeClaimTemplates {
		t := &p.Set.Spec.VolumeClaimTemplates[i]
		claim := p.Claim(claimName(t, o.Name))
		if claim == nil || claim.DeletionTimestamp != nil {
			continue
		}
		bound := claim.Status.Phase == corev1.ClaimBound
		if bound && !isReady(claim) {
			p.judgeGrowth(&s, claim, o)
		}
		switch {
		case !sameKind(claim, t):
			s.trouble = &trouble{claim.Name, WaitResizeFailed, EventClaimDiffers, fmt.Sprintf(
				"claim %s differs from its template in more than its size; delete it to have it made anew", claim.Name)}
		case bound && isSmall(claim, t):
			if trouble := p.cannotGrow(claim, t); trouble != nil {
				s.trouble = trouble
				continue
			}
			s.small, s.wants = append(s.small, claim), append(s.wants, t)
		}
	}
	return s
}

// judgeGrowth looks at a claim of the pod that has not got what it asks for.
func (p *pass) judgeGrowth(s *storage, claim *corev1.PersistentVolumeClaim, o *corev1.Pod) {
	if !awaitsMount(claim) {
		s.open = claim.Name
		return
	}
	s.unmade = claim.Name
	if p.workload.Policy == podupdate.InPlaceOnly {
		return
	}
	want := requested(claim)
	switch pod, size := remountOf(claim); {
	case size == want.String():
		s.remount = s.remount || pod == o.UID
	case o.Status.Phase == corev1.PodRunning: // one that has not mounted it yet will
		s.remount, s.unmarked = true, append(s.unmarked, claim)
	}
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

// cannotGrow says why the claim's class lets no volume grow; nil when it does. A template without a
// class is not asked.
func (p *pass) cannotGrow(claim, t *corev1.PersistentVolumeClaim) *trouble {
	if t.Spec.StorageClassName == nil {
		return nil
	}
	class, why := *t.Spec.StorageClassName, ""
	switch expandable, exists := p.Expandable[class]; {
	case p.ClassesErr != nil:
		return &trouble{claim.Name, WaitResize, WaitResize, fmt.Sprintf("claim %s cannot grow yet: %v", claim.Name, p.ClassesErr)}
	case !exists:
		why = "does not exist"
	case !expandable:
		why = "does not support volume expansion"
	default:
		return nil
	}
	return &trouble{claim.Name, WaitResizeFailed, EventResizeFailed, fmt.Sprintf("claim %s cannot grow: storage class %s %s", claim.Name, class, why)}
}

// growFor begins to grow the claims of the pod. Until they are done the pod counts against maxUnavailable,
// and as long as it serves it is left alone.
func (p *pass) growFor(o *pod) {
	for i, claim := range o.claims.small {
		p.grow = append(p.grow, action.Action{
			Verb: action.PatchSpec, Object: claim, Reason: "Resize", Message: "its template asks for more",
			Patches: []action.Patch{{Type: types.MergePatchType, Body: map[string]any{
				"metadata": map[string]any{"annotations": map[string]any{v1beta1.OwnedByAnnotation: p.Set.Name}},
				"spec":     map[string]any{"resources": resourcesOf(o.claims.wants[i])},
			}}},
			Event: &action.Event{
				Succeeded: EventResized, Failed: EventResizeFailed,
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
	if p.ClassesErr != nil {
		p.plan.RequeueWithin(classesCheck)
	}
	for _, o := range p.targets {
		switch c := o.claims; {
		case c.trouble != nil:
			p.plan.Wait(c.trouble.reason, c.trouble.claim, "%s", c.trouble.message)
		case c.open != "":
			p.plan.Wait(WaitResize, c.open, "claim %s grows; pod %s waits for it", c.open, o.Pod.Name)
		case c.unmade != "" && o.arrived():
			p.plan.Wait(WaitResize, c.unmade, "the file system of claim %s grows once pod %s is replaced, unless the driver grows it before", c.unmade, o.Pod.Name)
		}
	}
}
