package plan

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// Where a driver grows file systems at the next mount only, a pod with a grown volume is replaced. Its claim records
// that first: should it await a mount all the same once there is a new pod, that pod stays. A kubelet that has
// mounted a claim writes to it: the server refuses a decision from an older version of the claim.

// remountOf reads from a claim which pod is replaced for its sake, and for which size.
func remountOf(claim *corev1.PersistentVolumeClaim) (pod types.UID, size string) {
	uid, size, _ := strings.Cut(claim.Annotations[v1beta1.RemountAnnotation], "/")
	return types.UID(uid), size
}

// markForRemount writes on claims of the pod that await a mount that it is replaced for their sake.
func (p *pass) markForRemount(o *pod) {
	p.claimsFirst = true
	for _, claim := range o.claims.unmarked {
		size := requested(claim)
		p.plan.Put(&p.resizes, action.Action{
			Verb:    action.PatchMetadata,
			Object:  claim,
			Reason:  "Remount",
			Message: "pod " + o.Pod.Name + " is recreated to expand its file system",
			Patches: []action.Patch{{Type: types.MergePatchType, Body: map[string]any{
				"metadata": map[string]any{"annotations": map[string]any{v1beta1.RemountAnnotation: string(o.Pod.UID) + "/" + size.String()}},
			}}},
			Event: &action.Event{Failed: EventUpdateFailed},
		})
	}
}
