package inplace

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/version"
)

// resizable are the resources that Kubernetes resizes in place.
func resizable() [2]corev1.ResourceName {
	return [...]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
}

// effective is the cpu and memory of r as the API server stores it in a pod: a limit without a
// request is the request too.
func effective(r corev1.ResourceRequirements) corev1.ResourceRequirements {
	e := corev1.ResourceRequirements{Limits: corev1.ResourceList{}, Requests: corev1.ResourceList{}}
	for _, name := range resizable() {
		if q, ok := r.Limits[name]; ok {
			e.Limits[name], e.Requests[name] = q, q
		}
		if q, ok := r.Requests[name]; ok {
			e.Requests[name] = q
		}
	}
	return e
}

// removedQuantity is the path of a quantity that is in before and not in after, or empty.
func removedQuantity(before, after corev1.ResourceRequirements) string {
	for _, name := range resizable() {
		if _, had := before.Limits[name]; had && !has(after.Limits, name) {
			return "limits." + string(name)
		}
		if _, had := before.Requests[name]; had && !has(after.Requests, name) {
			return "requests." + string(name)
		}
	}
	return ""
}

// missingQuantities are the quantities of want that have lacks or has otherwise.
func missingQuantities(have, want corev1.ResourceRequirements) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Limits:   missing(have.Limits, want.Limits),
		Requests: missing(have.Requests, want.Requests),
	}
}

func missing(have, want corev1.ResourceList) corev1.ResourceList {
	var list corev1.ResourceList
	for _, name := range resizable() {
		q, ok := want[name]
		if !ok || has(have, name) && equality.Semantic.DeepEqual(have[name], q) {
			continue
		}
		if list == nil {
			list = corev1.ResourceList{}
		}
		list[name] = q
	}
	return list
}

// raisedLimit is the name of the resource, such as memory, of which the container has a lower limit than wanted; empty
// where there is none.
func raisedLimit(have, want corev1.ResourceRequirements) corev1.ResourceName {
	for _, name := range resizable() {
		old, limited := have.Limits[name]
		if now, ok := want.Limits[name]; limited && ok && now.Cmp(old) > 0 {
			return name
		}
	}
	return ""
}

// loweredLimit is the path of a limit of memory that the cluster does not lower, or empty.
func (o Options) loweredLimit(c *corev1.Container, want corev1.ResourceRequirements) string {
	if !o.KeepMemoryLimits || c == nil {
		return ""
	}
	old, limited := c.Resources.Limits[corev1.ResourceMemory]
	now, ok := want.Limits[corev1.ResourceMemory]
	if !limited || !ok || now.Cmp(old) >= 0 {
		return ""
	}
	if resizeRestarts(c, corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: now}}) {
		return ""
	}
	return "limits." + string(corev1.ResourceMemory)
}

// KeepsMemoryLimits reports whether a server of the version lowers no memory limit of a container that does not restart
// for it: none before Kubernetes 1.34 does.
func KeepsMemoryLimits(server string) (bool, error) {
	v, err := version.ParseGeneric(server)
	if err != nil {
		return false, fmt.Errorf("read the version of the server: %w", err)
	}
	return v.LessThan(version.MajorMinor(1, 34)), nil
}

func notLowered(path string) *NotPossibleError {
	return &NotPossibleError{Path: path, Message: "Kubernetes 1.33 lowers a memory limit only with resizePolicy RestartContainer"}
}

func noQuantities(r corev1.ResourceRequirements) bool { return len(r.Limits)+len(r.Requests) == 0 }

func has(list corev1.ResourceList, name corev1.ResourceName) bool {
	_, ok := list[name]
	return ok
}

// resizeRestarts reports whether changing the quantities in r restarts the container.
func resizeRestarts(c *corev1.Container, r corev1.ResourceRequirements) bool {
	return slices.ContainsFunc(c.ResizePolicy, func(p corev1.ContainerResizePolicy) bool {
		return p.RestartPolicy == corev1.RestartContainer && (has(r.Limits, p.ResourceName) || has(r.Requests, p.ResourceName))
	})
}

// qosClass is the class that Kubernetes gives to a pod of the spec.
func qosClass(spec *corev1.PodSpec) corev1.PodQOSClass {
	var all []corev1.ResourceRequirements
	if spec.Resources != nil && !noQuantities(effective(*spec.Resources)) {
		all = append(all, effective(*spec.Resources))
	} else {
		for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
			for i := range containers {
				all = append(all, effective(containers[i].Resources))
			}
		}
	}
	bestEffort, guaranteed := true, true
	for _, r := range all {
		for _, name := range resizable() {
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
