package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/workloads/podupdate"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// claimState is how far the claims of a pod follow their templates, where the strategy asks for that.
type claimState struct {
	toGrow            []growth                        // claims to grow
	growing           string                          // a claim with a volume that grows
	kubeletUntil      time.Time                       // until when the kubelet may grow that one's file system as it is mounted
	fileSystemPending string                          // a claim with a file system that grows at the next mount
	needsRemount      bool                            // only a new pod mounts such a claim again
	unmarked          []*corev1.PersistentVolumeClaim // claims that do not record yet for which pod that is so
	problem           *claimProblem                   // why a claim cannot follow
}

// holdsDeletion reports whether a pod that serves is not deleted for now: a new one would wait for the same volume. A file
// system grows with the mount of a new pod.
func (s *claimState) holdsDeletion() bool { return s.growing != "" && s.kubeletUntil.IsZero() }

// growth is a claim that asks for another size than its template, and the template.
type growth struct{ claim, template *corev1.PersistentVolumeClaim }

// claimProblem is why a claim cannot follow its template.
type claimProblem struct {
	claim   string
	reason  string // of the wait
	event   string
	message string
}

// kubeletPatience is how long the kubelet may take to grow a file system that is mounted. It does that when it
// synchronizes the pod, every 60 to 90 seconds. A driver that grows none before the next mount reports the same until
// then.
const kubeletPatience = 3 * time.Minute

// classesCheck is when storage classes are asked for again that could not be read.
const classesCheck = 10 * time.Second

// growsClaims reports whether claims grow with their templates.
func (p *pass) growsClaims() bool {
	return p.FeatureGates.AutoResizePVC && p.Set.Spec.VolumeClaimUpdateStrategy.Type == v1beta1.OnPodRollingUpdate
}

// inspectClaims looks at the claims of a pod, where they grow. One that is missing or on its way out is
// left out, and one without a volume can only differ from its template: no server lets it grow.
func (p *pass) inspectClaims(o podstate.State, updated bool) claimState {
	var s claimState
	if !p.growsClaims() {
		return s
	}
	for i := range p.Set.Spec.VolumeClaimTemplates {
		t := &p.Set.Spec.VolumeClaimTemplates[i]
		claim := p.Claim(claimName(t, o.Pod.Name))
		if claim == nil || claim.DeletionTimestamp != nil {
			continue
		}
		if _, failed := growthFailure(claim); isBound(claim) && !hasRequestedSize(claim) && !failed {
			p.inspectGrowth(&s, claim, o, updated)
		}
		p.compareWithTemplate(&s, claim, t)
	}
	return s
}

func isBound(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Status.Phase == corev1.ClaimBound
}

// compareWithTemplate finds out whether the claim is to grow, or why it cannot become like its template.
func (p *pass) compareWithTemplate(s *claimState, claim, t *corev1.PersistentVolumeClaim) {
	failure, failed := growthFailure(claim)
	switch {
	case !sameKind(claim, t):
		s.problem = &claimProblem{claim.Name, WaitResizeFailed, EventClaimDiffers, fmt.Sprintf(
			"PVC %s differs from its template in more than the size: to have it recreated, save its data and delete it", claim.Name)}
	case isBound(claim) && isSmallerThanTemplate(claim, t):
		if trouble := p.cannotGrow(claim, t); trouble != nil {
			s.problem = trouble
			return
		}
		s.toGrow = append(s.toGrow, growth{claim, t})
	case isBound(claim) && failed && hasLess(claim, requested(t)):
		if want := requested(claim); want.Cmp(requested(t)) > 0 {
			s.toGrow = append(s.toGrow, growth{claim, t})
			return
		}
		s.problem = &claimProblem{claim.Name, WaitResizeFailed, EventResizeFailed, fmt.Sprintf(
			"the expansion of PVC %s to %s failed: %s; to try another size, lower the size in the template", claim.Name, storageOf(claim), failure)}
	}
}

// inspectGrowth looks at a claim of the pod that has less than its requested size.
func (p *pass) inspectGrowth(s *claimState, claim *corev1.PersistentVolumeClaim, o podstate.State, updated bool) {
	pending := pendingFileSystem(claim)
	if pending == nil {
		s.growing = claim.Name
		return
	}
	s.fileSystemPending = claim.Name
	if p.workload.Policy == podupdate.InPlaceOnly {
		return
	}
	until := pending.LastTransitionTime.Add(kubeletPatience)
	switch pod, size := remountOf(claim); {
	case size == storageOf(claim):
		s.needsRemount = s.needsRemount || pod == o.Pod.UID
	case o.Pod.Status.Phase != corev1.PodRunning: // it has not mounted it yet, and will
	case p.Now.Before(until) && !p.isReplacedAnyway(o, updated):
		s.growing, s.kubeletUntil = claim.Name, until
		p.plan.RequeueWithin(until.Sub(p.Now))
	default:
		s.needsRemount = true
		s.unmarked = append(s.unmarked, claim)
	}
}

// isReplacedAnyway reports whether the pod needs a successor for another reason than its claims.
func (p *pass) isReplacedAnyway(o podstate.State, updated bool) bool {
	return !hasStorage(o.Pod, p.Set.Spec.VolumeClaimTemplates) ||
		!updated && p.Chosen.Update != nil && p.workload.NeedsNewPod(o, p.Chosen.Update)
}

// growthFailure is why the volume of the claim could not grow, in the words of its driver, and whether it could not.
// Kubernetes continues to try, and lets the claim ask for less than that.
func growthFailure(claim *corev1.PersistentVolumeClaim) (words string, failed bool) {
	if hasRequestedSize(claim) {
		return "", false
	}
	for i := range claim.Status.Conditions {
		switch c := &claim.Status.Conditions[i]; c.Type {
		case corev1.PersistentVolumeClaimControllerResizeError, corev1.PersistentVolumeClaimNodeResizeError:
			if c.Status == corev1.ConditionTrue {
				return cmp.Or(c.Message, string(c.Type)), true
			}
		default: // the others tell of no failure to grow
		}
	}
	switch state := claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage]; state {
	case corev1.PersistentVolumeClaimControllerResizeInfeasible, corev1.PersistentVolumeClaimNodeResizeInfeasible:
		return string(state), true
	default: // nothing has failed, or it is tried again
	}
	return "", false
}

// sameKind compares class and access modes. An absent class is any class.
func sameKind(claim, t *corev1.PersistentVolumeClaim) bool {
	a, b := claim.Spec.StorageClassName, t.Spec.StorageClassName
	return (a == nil || b == nil || *a == *b) && slices.Equal(claim.Spec.AccessModes, t.Spec.AccessModes)
}

// isSmallerThanTemplate reports whether the claim asks for less than its template. One that asks for more keeps its
// size.
func isSmallerThanTemplate(claim, t *corev1.PersistentVolumeClaim) bool {
	has := requested(claim)
	return has.Cmp(requested(t)) < 0
}

// hasRequestedSize reports whether the claim has the size that it asks for.
func hasRequestedSize(claim *corev1.PersistentVolumeClaim) bool {
	return !hasLess(claim, requested(claim))
}

// hasLess reports whether the claim has less than the size.
func hasLess(claim *corev1.PersistentVolumeClaim, size resource.Quantity) bool {
	has := claim.Status.Capacity[corev1.ResourceStorage]
	return has.Cmp(size) < 0
}

// pendingFileSystem is the condition that the volume has grown and its file system has not, or nil.
func pendingFileSystem(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaimCondition {
	i := slices.IndexFunc(claim.Status.Conditions, func(c corev1.PersistentVolumeClaimCondition) bool {
		return c.Type == corev1.PersistentVolumeClaimFileSystemResizePending && c.Status == corev1.ConditionTrue
	})
	if i < 0 {
		return nil
	}
	return &claim.Status.Conditions[i]
}

func requested(claim *corev1.PersistentVolumeClaim) resource.Quantity {
	return claim.Spec.Resources.Requests[corev1.ResourceStorage]
}

// cannotGrow is the reason why the claim's class lets no volume grow; nil when it does. A template without a class is
// not asked.
func (p *pass) cannotGrow(claim, t *corev1.PersistentVolumeClaim) *claimProblem {
	if t.Spec.StorageClassName == nil {
		return nil
	}
	class, why := *t.Spec.StorageClassName, ""
	switch expandable, exists := p.Expandable[class]; {
	case p.ClassesErr != nil:
		return &claimProblem{claim.Name, WaitResize, WaitResize, fmt.Sprintf("PVC %s waits for its expansion: %v", claim.Name, p.ClassesErr)}
	case !exists:
		why = "does not exist"
	case !expandable:
		why = "does not support volume expansion"
	default:
		return nil
	}
	return &claimProblem{claim.Name, WaitResizeFailed, EventResizeFailed, fmt.Sprintf("PVC %s cannot be expanded: StorageClass %s %s", claim.Name, class, why)}
}

// growClaimsOf begins to grow claims of the pod. Until they are done the pod counts against maxUnavailable,
// and as long as it serves it is left alone.
func (p *pass) growClaimsOf(o *pod, claims []growth) {
	for _, g := range claims {
		p.plan.Put(&p.resizes, p.resize(o, g))
	}
}

// resize has the claim ask for the size in its template. Nothing else of a bound claim can change.
func (p *pass) resize(o *pod, g growth) action.Action {
	why := "its template requests more"
	if !isSmallerThanTemplate(g.claim, g.template) {
		why = "its expansion failed, and its template requests less"
	}
	return action.Action{
		Verb:    action.PatchSpec,
		Object:  g.claim,
		Reason:  "Resize",
		Message: why,
		Patches: []action.Patch{{Type: types.MergePatchType, Body: map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{v1beta1.OwnedByAnnotation: p.Set.Name}},
			"spec":     map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": storageOf(g.template)}}},
		}}},
		Event: &action.Event{
			Succeeded: EventResized,
			Failed:    EventResizeFailed,
			Note:      "Requested " + storageOf(g.template) + " for PVC " + g.claim.Name + " of pod " + o.Pod.Name + " in StatefulSet " + p.Set.Name,
		},
	}
}

// growable are the claims of the pod that may grow in this pass: all but those that the server does not let grow, until
// they are tried again. Neither the update of the pod nor others wait for those.
func (p *pass) growable(o *pod) []growth {
	var claims []growth
	for _, g := range o.claims.toGrow {
		if a := p.resize(o, g); !p.plan.YieldsPlace(&a, &p.resizes) {
			claims = append(claims, g)
		}
	}
	return claims
}

// holdGrowth has claims that the server did not let grow explained, also while it is not their turn.
func (p *pass) holdGrowth() {
	for _, o := range p.targets {
		for _, g := range o.claims.toGrow {
			p.plan.Hold(&p.resizes, p.resize(o, g))
		}
	}
}

// refusedGrowth is the wait of a claim that the server does not let grow, or nil.
func (p *pass) refusedGrowth(todo Plan) *action.Wait {
	for i := range todo.Waits {
		w := &todo.Waits[i]
		isClaim := slices.ContainsFunc(p.targets, func(o *pod) bool {
			return slices.ContainsFunc(o.claims.toGrow, func(g growth) bool { return g.claim.Name == w.Object })
		})
		if w.Reason == action.WaitRefused && isClaim {
			return &action.Wait{Reason: w.Reason, Message: "the expansion of PVC " + w.Object + " was refused: " + w.Message}
		}
	}
	return nil
}

// storageOf is the storage that a claim or a template asks for.
func storageOf(t *corev1.PersistentVolumeClaim) string {
	storage := requested(t)
	return storage.String()
}

// growClaims writes the claims that grow, and reports claims that cannot.
func growClaims(p *pass) {
	p.plan.Add(p.resizes)
	if p.ClassesErr != nil {
		p.plan.RequeueWithin(classesCheck)
	}
	for _, o := range p.targets {
		switch c := o.claims; {
		case c.problem != nil:
			p.plan.Wait(c.problem.reason, c.problem.claim, "%s", c.problem.message)
		case !c.kubeletUntil.IsZero():
			p.plan.Wait(WaitResize, c.growing, "PVC %s: pod %s is recreated at %s unless the kubelet expands the file system before",
				c.growing, o.Pod.Name, c.kubeletUntil.UTC().Format(time.RFC3339))
		case c.growing != "":
			p.plan.Wait(WaitResize, c.growing, "PVC %s is being expanded; pod %s waits for it", c.growing, o.Pod.Name)
		case c.fileSystemPending != "" && !p.lacksAnything(o):
			p.plan.Wait(WaitResize, c.fileSystemPending, "PVC %s: the file system is expanded when pod %s is recreated, or earlier if the driver can",
				c.fileSystemPending, o.Pod.Name)
		}
	}
}
