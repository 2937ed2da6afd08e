package forecast

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/flotilla-project/flotilla/core/simulation/cluster"
)

// quotas refuse the creation of pods beyond the resource quotas of the namespace.
type quotas struct {
	scene *Scene
	began map[corev1.ResourceName]resource.Quantity // usage of the pods of the workload before the edit
}

func newQuotas(scene *Scene) *quotas {
	return &quotas{scene: scene, began: usage(scene.Pods)}
}

// admit refuses a new pod for which a quota has no room.
func (q *quotas) admit(w *cluster.World, e cluster.Event) error {
	pod, isPod := e.Object.(*corev1.Pod)
	if !isPod || e.Type != cluster.Added {
		return nil
	}
	now, wanted := usage(w.Pods()), usage([]*corev1.Pod{pod})
	for _, quota := range q.scene.Quotas {
		if len(quota.Spec.Scopes) > 0 || quota.Spec.ScopeSelector != nil {
			continue
		}
		if over := q.exceeded(quota, now, wanted); len(over) > 0 {
			return fmt.Errorf("exceeded quota: %s, %s", quota.Name, strings.Join(over, ", "))
		}
	}
	return nil
}

func (q *quotas) exceeded(quota *corev1.ResourceQuota, now, wanted map[corev1.ResourceName]resource.Quantity) []string {
	var over []string
	for name, hard := range quota.Status.Hard {
		more, known := wanted[name]
		if !known || more.IsZero() {
			continue
		}
		used := quota.Status.Used[name].DeepCopy()
		used.Sub(q.began[name])
		used.Add(now[name])
		sum := used.DeepCopy()
		sum.Add(more)
		if sum.Cmp(hard) > 0 {
			over = append(over, fmt.Sprintf("requested: %s=%s, used: %[1]s=%s, limited: %[1]s=%s", name, more.String(), used.String(), hard.String()))
		}
	}
	slices.Sort(over)
	return over
}

// usage counts the use of quotas by pods, by the names that quotas have for it.
func usage(pods []*corev1.Pod) map[corev1.ResourceName]resource.Quantity {
	used := map[corev1.ResourceName]resource.Quantity{}
	add := func(name corev1.ResourceName, more resource.Quantity) {
		sum := used[name]
		sum.Add(more)
		used[name] = sum
	}
	for _, pod := range pods {
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		add(corev1.ResourcePods, resource.MustParse("1"))
		add("count/pods", resource.MustParse("1"))
		for name, quantity := range requests(pod) {
			add("requests."+name, quantity)
			if name == corev1.ResourceCPU || name == corev1.ResourceMemory {
				add(name, quantity)
			}
		}
		for name, quantity := range resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{}) {
			add("limits."+name, quantity)
		}
	}
	return used
}
