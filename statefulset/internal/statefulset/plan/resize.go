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

// claimState is how far the claims of a pod follow their templates, where the strategy asks for that.
type claimState struct {
	toGrow            []*corev1.PersistentVolumeClaim // claims to grow
	templates         []*corev1.PersistentVolumeClaim // the templates of those
	growing           string                          // a claim whose volume grows
	fileSystemPending string                          // a claim whose file system grows when it is mounted anew
	needsRemount      bool                            // only a new pod mounts such a claim anew
	unmarked          []*corev1.PersistentVolumeClaim // claims that do not say yet for which pod that is so
	problem           *claimProblem                   // why a claim cannot follow
}

// claimProblem is why a claim cannot follow its template.
type claimProblem struct {
	claim   string
	reason  string // of the wait
	event   string
	message string
}

// classesCheck is when storage classes are asked for again that could not be read.
const classesCheck = 10 * time.Second

// growsClaims reports whether claims grow with their templates.
func (p *pass) growsClaims() bool {
	return p.FeatureGates.AutoResizePVC && p.Set.Spec.VolumeClaimUpdateStrategy.Type == v1beta1.OnPodRollingUpdate
}

// inspectClaims looks at the claims of a pod, where they grow. One that is missing or on its way out is
// left out, and one without a volume can only differ from its template: no server lets it grow.
func (p *pass) inspectClaims(o *corev1.Pod) claimState {
	var s claimState
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
		if bound && !hasRequestedSize(claim) {
			p.inspectGrowth(&s, claim, o)
		}
		switch {
		case !sameKind(claim, t):
			s.problem = &claimProblem{claim.Name, WaitResizeFailed, EventClaimDiffers, fmt.Sprintf(
				"claim %s differs from its template in more than its size; delete it to have it made anew", claim.Name)}
		case bound && isSmallerThanTemplate(claim, t):
			if trouble := p.cannotGrow(claim, t); trouble != nil {
				s.problem = trouble
				continue
			}
			s.toGrow, s.templates = append(s.toGrow, claim), append(s.templates, t)
		}
	}
	return s
}

// inspectGrowth looks at a claim of the pod that has not got what it asks for.
func (p *pass) inspectGrowth(s *claimState, claim *corev1.PersistentVolumeClaim, o *corev1.Pod) {
	if !awaitsMount(claim) {
		s.growing = claim.Name
		return
	}
	s.fileSystemPending = claim.Name
	if p.workload.Policy == podupdate.InPlaceOnly {
		return
	}
	want := requested(claim)
	switch pod, size := remountOf(claim); {
	case size == want.String():
		s.needsRemount = s.needsRemount || pod == o.UID
	case o.Status.Phase == corev1.PodRunning: // one that has not mounted it yet will
		s.needsRemount, s.unmarked = true, append(s.unmarked, claim)
	}
}

// sameKind compares class and access modes. An absent class is any class.
func sameKind(claim, t *corev1.PersistentVolumeClaim) bool {
	a, b := claim.Spec.StorageClassName, t.Spec.StorageClassName
	return (a == nil || b == nil || *a == *b) && slices.Equal(claim.Spec.AccessModes, t.Spec.AccessModes)
}

// isSmallerThanTemplate reports whether the claim asks for less than its template. One that asks for more keeps what it
// has.
func isSmallerThanTemplate(claim, t *corev1.PersistentVolumeClaim) bool {
	has := requested(claim)
	return has.Cmp(requested(t)) < 0
}

// hasRequestedSize reports whether the claim has what it asks for.
func hasRequestedSize(claim *corev1.PersistentVolumeClaim) bool {
	has := claim.Status.Capacity[corev1.ResourceStorage]
	return has.Cmp(requested(claim)) >= 0
}

// awaitsMount reports whether the volume has grown and its file system grows when it is mounted.
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
func (p *pass) cannotGrow(claim, t *corev1.PersistentVolumeClaim) *claimProblem {
	if t.Spec.StorageClassName == nil {
		return nil
	}
	class, why := *t.Spec.StorageClassName, ""
	switch expandable, exists := p.Expandable[class]; {
	case p.ClassesErr != nil:
		return &claimProblem{claim.Name, WaitResize, WaitResize, fmt.Sprintf("claim %s cannot grow yet: %v", claim.Name, p.ClassesErr)}
	case !exists:
		why = "does not exist"
	case !expandable:
		why = "does not support volume expansion"
	default:
		return nil
	}
	return &claimProblem{claim.Name, WaitResizeFailed, EventResizeFailed, fmt.Sprintf("claim %s cannot grow: storage class %s %s", claim.Name, class, why)}
}

// growClaimsOf begins to grow the claims of the pod. Until they are done the pod counts against maxUnavailable,
// and as long as it serves it is left alone.
func (p *pass) growClaimsOf(o *pod) {
	for i, claim := range o.claims.toGrow {
		p.resizes = append(p.resizes, action.Action{
			Verb: action.PatchSpec, Object: claim, Reason: "Resize", Message: "its template asks for more",
			Patches: []action.Patch{{Type: types.MergePatchType, Body: map[string]any{
				"metadata": map[string]any{"annotations": map[string]any{v1beta1.OwnedByAnnotation: p.Set.Name}},
				"spec":     map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": storageOf(o.claims.templates[i])}}},
			}}},
			Event: &action.Event{
				Succeeded: EventResized, Failed: EventResizeFailed,
				Note: "resize Claim " + claim.Name + " Pod " + o.Pod.Name + " in StatefulSet " + p.Set.Name + " successful",
			},
		})
	}
}

// storageOf is the storage that a template asks for. Nothing else of a bound claim can change: limits are those with which
// it was made.
func storageOf(t *corev1.PersistentVolumeClaim) string {
	storage := requested(t)
	return storage.String()
}

// growClaims writes the claims that grow, and tells of those that cannot.
func growClaims(p *pass) {
	p.plan.Add(action.Step{Name: stepClaims, Actions: p.resizes})
	if p.ClassesErr != nil {
		p.plan.RequeueWithin(classesCheck)
	}
	for _, o := range p.targets {
		switch c := o.claims; {
		case c.problem != nil:
			p.plan.Wait(c.problem.reason, c.problem.claim, "%s", c.problem.message)
		case c.growing != "":
			p.plan.Wait(WaitResize, c.growing, "claim %s grows; pod %s waits for it", c.growing, o.Pod.Name)
		case c.fileSystemPending != "" && o.upToDate():
			p.plan.Wait(WaitResize, c.fileSystemPending, "the file system of claim %s grows once pod %s is replaced, unless the driver grows it before", c.fileSystemPending, o.Pod.Name)
		}
	}
}
