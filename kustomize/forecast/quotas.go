package forecast

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/storage/volume"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
)

// quotas refuse pods and claims beyond the resource quotas of the namespace.
type quotas []*quota

// quota is a resource quota. Its use is the one of its status at first, and follows the changes of pods and claims.
type quota struct {
	*corev1.ResourceQuota

	used corev1.ResourceList
}

func newQuotas(all []*corev1.ResourceQuota) quotas {
	var q quotas
	for _, one := range all {
		used := corev1.ResourceList{}
		addTo(used, one.Status.Used)
		q = append(q, &quota{ResourceQuota: one, used: used})
	}
	return q
}

// admit refuses a write that needs more than a quota has left.
func (q quotas) admit(e cluster.Event) error {
	if e.Type == cluster.Deleted {
		return nil
	}
	for _, quota := range q {
		if over := quota.exceeded(quota.change(e)); len(over) > 0 {
			return fmt.Errorf("exceeded quota: %s, %s", quota.Name, strings.Join(over, ", "))
		}
	}
	return nil
}

// see takes an event in.
func (q quotas) see(e cluster.Event) {
	for _, quota := range q {
		addTo(quota.used, quota.change(e))
	}
}

// change returns how a write changes the use of the quota.
func (q *quota) change(e cluster.Event) corev1.ResourceList {
	change := corev1.ResourceList{}
	if e.Type != cluster.Deleted && matches(q.ResourceQuota, e.Object) {
		addTo(change, usage(e.Object))
	}
	if e.Old != nil && matches(q.ResourceQuota, e.Old) {
		subtractFrom(change, usage(e.Old))
	}
	return change
}

// exceeded describes the resources of which the quota has too little left.
func (q *quota) exceeded(wanted corev1.ResourceList) []string {
	var over []string
	for name, hard := range q.Status.Hard {
		more, used := wanted[name], q.used[name]
		sum := used.DeepCopy()
		sum.Add(more)
		if more.Sign() > 0 && sum.Cmp(hard) > 0 {
			over = append(over, fmt.Sprintf("requested: %[1]s=%[2]s, used: %[1]s=%[3]s, limited: %[1]s=%[4]s", name, more.String(), used.String(), hard.String()))
		}
	}
	slices.Sort(over)
	return over
}

// usage returns the use of quotas by an object, by the names that quotas have for it. Other objects than pods and claims use
// nothing.
func usage(o action.Object) corev1.ResourceList {
	switch o := o.(type) {
	case *corev1.Pod:
		return usageOfPod(o)
	case *corev1.PersistentVolumeClaim:
		return usageOfClaim(o)
	}
	return nil
}

func usageOfPod(pod *corev1.Pod) corev1.ResourceList {
	used := corev1.ResourceList{"count/pods": one()}
	if podstate.IsFinished(pod) {
		return used
	}
	used[corev1.ResourcePods] = one()
	for name, quantity := range requests(pod) {
		used[name], used["requests."+name] = quantity, quantity
	}
	for name, quantity := range resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{}) {
		used["limits."+name] = quantity
	}
	return used
}

func usageOfClaim(claim *corev1.PersistentVolumeClaim) corev1.ResourceList {
	storage := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	used := corev1.ResourceList{
		"count/persistentvolumeclaims":        one(),
		corev1.ResourcePersistentVolumeClaims: one(),
		corev1.ResourceRequestsStorage:        storage,
	}
	if class := corev1.ResourceName(volume.GetPersistentVolumeClaimClass(claim)); class != "" {
		ofClass := class + ".storageclass.storage.k8s.io/"
		used[ofClass+corev1.ResourcePersistentVolumeClaims], used[ofClass+corev1.ResourceRequestsStorage] = one(), storage
	}
	return used
}

func one() resource.Quantity { return *resource.NewQuantity(1, resource.DecimalSI) }
