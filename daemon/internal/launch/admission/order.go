package admission

import (
	"math"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/contract"

	"github.com/flotilla-project/flotilla/daemon/internal/podmarks"
)

// maxBaseLength is how many characters of generateName the API server uses before five random characters.
const maxBaseLength = 58

// AddBarriers gives every container of a pod with priorities its barrier, as the last of its environment variables. An
// existing barrier is rewritten: containers may have been added since, and a manifest may be a copy of a running pod.
// suffix returns the end of a generated name. With errors the pod is unchanged.
func AddBarriers(pod *corev1.Pod, suffix func() string) field.ErrorList {
	if isMirror(pod) {
		return nil
	}
	priorities, errs := prioritiesOf(pod)
	errs = append(errs, foreignBarriers(pod)...)
	if len(errs) > 0 {
		return errs
	}
	if priorities == nil {
		removeBarriers(pod)
		return nil
	}
	if pod.Name == "" {
		base := pod.GenerateName
		pod.Name = base[:min(len(base), maxBaseLength)] + suffix()
	}
	delete(pod.Annotations, contract.ContainerLaunchPriorityCompletedAnnotation)
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		barrier := podmarks.Barrier(pod.Name, priorities[i])
		found := false
		for j := range c.Env {
			if c.Env[j].Name == contract.ContainerBarrierEnv {
				c.Env[j], found = barrier, true
			}
		}
		if !found {
			c.Env = append(c.Env, barrier)
		}
	}
	return nil
}

// prioritiesOf returns the priorities of the containers, nil if they all start together.
func prioritiesOf(pod *corev1.Pod) ([]int, field.ErrorList) {
	n := len(pod.Spec.Containers)
	if n < 2 {
		return nil, nil
	}
	priorities := make([]int, n)
	if pod.Annotations[contract.ContainerLaunchPriorityAnnotation] == contract.LaunchOrdered {
		for i := range priorities {
			priorities[i] = -i
		}
		return priorities, nil
	}
	var errs field.ErrorList
	for i := range pod.Spec.Containers {
		priority, err := priorityOf(&pod.Spec.Containers[i], field.NewPath("spec", "containers").Index(i))
		if err != nil {
			errs = append(errs, err)
		}
		priorities[i] = priority
	}
	if slices.Max(priorities) == slices.Min(priorities) {
		return nil, errs
	}
	return priorities, errs
}

// priorityOf returns the value of the container's last variable of the name, 0 when there is none.
func priorityOf(c *corev1.Container, path *field.Path) (int, *field.Error) {
	for i, e := range slices.Backward(c.Env) {
		if e.Name != contract.ContainerPriorityEnv {
			continue
		}
		at := path.Child("env").Index(i)
		if e.ValueFrom != nil {
			return 0, field.Invalid(at.Child("valueFrom"), "", "must be an integer in value: it is read when the pod is created")
		}
		priority, err := strconv.ParseInt(e.Value, 10, 64)
		switch {
		case err != nil:
			return 0, field.Invalid(at.Child("value"), e.Value, "must be an integer")
		case priority < -math.MaxInt32 || priority > math.MaxInt32:
			return 0, field.Invalid(at.Child("value"), e.Value, "must be between -2147483647 and 2147483647")
		}
		return int(priority), nil
	}
	return 0, nil
}

// foreignBarriers returns environment variables of the reserved name that are no barriers.
func foreignBarriers(pod *corev1.Pod) field.ErrorList {
	var errs field.ErrorList
	for i := range pod.Spec.Containers {
		for j, e := range pod.Spec.Containers[i].Env {
			if e.Name == contract.ContainerBarrierEnv && (e.ValueFrom == nil || e.ValueFrom.ConfigMapKeyRef == nil) {
				errs = append(errs, field.Forbidden(field.NewPath("spec", "containers").Index(i).Child("env").Index(j),
					"the name is reserved for the launch barrier of the operator"))
			}
		}
	}
	return errs
}

// removeBarriers removes barriers of a copied manifest, which would stay closed.
func removeBarriers(pod *corev1.Pod) {
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == contract.ContainerBarrierEnv })
	}
}

// isMirror reports whether the pod is the mirror pod of a static pod, which is read-only.
func isMirror(pod *corev1.Pod) bool {
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return mirror
}
