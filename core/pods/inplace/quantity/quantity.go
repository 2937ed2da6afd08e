package quantity

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Resizable are the resources that Kubernetes resizes in place.
func Resizable() [2]corev1.ResourceName {
	return [...]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
}

// Effective is the cpu and memory of r as the API server stores it in a pod: a limit without a
// request is the request too.
func Effective(r corev1.ResourceRequirements) corev1.ResourceRequirements {
	e := corev1.ResourceRequirements{Limits: corev1.ResourceList{}, Requests: corev1.ResourceList{}}
	for _, name := range Resizable() {
		if q, ok := r.Limits[name]; ok {
			e.Limits[name], e.Requests[name] = q, q
		}
		if q, ok := r.Requests[name]; ok {
			e.Requests[name] = q
		}
	}
	return e
}

// Removed is the path of a quantity that is in before and not in after, or empty.
func Removed(before, after corev1.ResourceRequirements) string {
	for _, name := range Resizable() {
		if _, had := before.Limits[name]; had && !Has(after.Limits, name) {
			return "limits." + string(name)
		}
		if _, had := before.Requests[name]; had && !Has(after.Requests, name) {
			return "requests." + string(name)
		}
	}
	return ""
}

// Missing are the quantities of want that have lacks or has otherwise.
func Missing(have, want corev1.ResourceRequirements) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Limits:   missing(have.Limits, want.Limits),
		Requests: missing(have.Requests, want.Requests),
	}
}

func missing(have, want corev1.ResourceList) corev1.ResourceList {
	var list corev1.ResourceList
	for _, name := range Resizable() {
		q, ok := want[name]
		if !ok || Has(have, name) && equality.Semantic.DeepEqual(have[name], q) {
			continue
		}
		if list == nil {
			list = corev1.ResourceList{}
		}
		list[name] = q
	}
	return list
}

// RaisedLimit is the name of the resource, such as memory, of which the container has a lower limit than wanted; empty
// where there is none.
func RaisedLimit(have, want corev1.ResourceRequirements) corev1.ResourceName {
	for _, name := range Resizable() {
		old, limited := have.Limits[name]
		if now, ok := want.Limits[name]; limited && ok && now.Cmp(old) > 0 {
			return name
		}
	}
	return ""
}

// None reports whether r names no quantity.
func None(r corev1.ResourceRequirements) bool { return len(r.Limits)+len(r.Requests) == 0 }

// Has reports whether the list has a quantity of the resource.
func Has(list corev1.ResourceList, name corev1.ResourceName) bool {
	_, ok := list[name]
	return ok
}

// Restarts reports whether changing the quantities in r restarts the container.
func Restarts(c *corev1.Container, r corev1.ResourceRequirements) bool {
	return slices.ContainsFunc(c.ResizePolicy, func(p corev1.ContainerResizePolicy) bool {
		return p.RestartPolicy == corev1.RestartContainer && (Has(r.Limits, p.ResourceName) || Has(r.Requests, p.ResourceName))
	})
}

// QoSClass is the class that Kubernetes gives to a pod of the spec.
func QoSClass(spec *corev1.PodSpec) corev1.PodQOSClass {
	var all []corev1.ResourceRequirements
	if spec.Resources != nil && !None(Effective(*spec.Resources)) {
		all = append(all, Effective(*spec.Resources))
	} else {
		for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
			for i := range containers {
				all = append(all, Effective(containers[i].Resources))
			}
		}
	}
	bestEffort, guaranteed := true, true
	for _, r := range all {
		for _, name := range Resizable() {
			limit, request := r.Limits[name], r.Requests[name]
			bestEffort = bestEffort && limit.IsZero() && request.IsZero()
			guaranteed = guaranteed && !limit.IsZero() && limit.Cmp(request) == 0
		}
	}
	switch {
	case bestEffort:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}
