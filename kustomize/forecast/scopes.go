package forecast

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"

	"github.com/flotilla-project/flotilla/core/plan/action"
)

// matches reports whether a quota counts an object: all scopes and all expressions of its selector fit.
func matches(quota *corev1.ResourceQuota, o action.Object) bool {
	for _, scope := range quota.Spec.Scopes {
		if !fits(o, corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists}) {
			return false
		}
	}
	selector := ptr.Deref(quota.Spec.ScopeSelector, corev1.ScopeSelector{})
	return !slices.ContainsFunc(selector.MatchExpressions, func(r corev1.ScopedResourceSelectorRequirement) bool { return !fits(o, r) })
}

// fits reports whether an object is in a scope. The API server allows other operators than Exists only for scopes with a name.
func fits(o action.Object, r corev1.ScopedResourceSelectorRequirement) bool {
	if claim, is := o.(*corev1.PersistentVolumeClaim); is {
		return r.ScopeName == corev1.ResourceQuotaScopeVolumeAttributesClass && selects(r, ptr.Deref(claim.Spec.VolumeAttributesClassName, ""))
	}
	pod, is := o.(*corev1.Pod)
	if !is {
		return false
	}
	deadline := pod.Spec.ActiveDeadlineSeconds
	switch r.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return deadline != nil && *deadline >= 0
	case corev1.ResourceQuotaScopeNotTerminating:
		return deadline == nil || *deadline < 0
	case corev1.ResourceQuotaScopeBestEffort:
		return isBestEffort(pod)
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !isBestEffort(pod)
	case corev1.ResourceQuotaScopePriorityClass:
		return selects(r, pod.Spec.PriorityClassName)
	case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return slices.ContainsFunc(affinityTerms(pod), func(t corev1.PodAffinityTerm) bool {
			return len(t.Namespaces) > 0 || t.NamespaceSelector != nil
		})
	case corev1.ResourceQuotaScopeVolumeAttributesClass: // of claims only
	}
	return false
}

// selects reports whether a selector takes an object with the name of a class, empty if it has none.
func selects(r corev1.ScopedResourceSelectorRequirement, class string) bool {
	switch r.Operator {
	case corev1.ScopeSelectorOpExists:
		return class != ""
	case corev1.ScopeSelectorOpDoesNotExist:
		return class == ""
	case corev1.ScopeSelectorOpIn:
		return class != "" && slices.Contains(r.Values, class)
	case corev1.ScopeSelectorOpNotIn:
		return class == "" || !slices.Contains(r.Values, class)
	}
	return false
}

// isBestEffort reports whether the pod has no requests and no limits of cpu and memory.
func isBestEffort(pod *corev1.Pod) bool {
	bare := resourcehelper.PodResourcesOptions{ExcludeOverhead: true}
	for _, list := range []corev1.ResourceList{resourcehelper.PodRequests(pod, bare), resourcehelper.PodLimits(pod, bare)} {
		if !list.Cpu().IsZero() || !list.Memory().IsZero() {
			return false
		}
	}
	return true
}

// affinityTerms returns the terms of the pod that select pods, required and preferred.
func affinityTerms(pod *corev1.Pod) []corev1.PodAffinityTerm {
	affinity := ptr.Deref(pod.Spec.Affinity, corev1.Affinity{})
	near := ptr.Deref(affinity.PodAffinity, corev1.PodAffinity{})
	far := ptr.Deref(affinity.PodAntiAffinity, corev1.PodAntiAffinity{})
	terms := slices.Concat(near.RequiredDuringSchedulingIgnoredDuringExecution, far.RequiredDuringSchedulingIgnoredDuringExecution)
	for _, preferred := range slices.Concat(near.PreferredDuringSchedulingIgnoredDuringExecution, far.PreferredDuringSchedulingIgnoredDuringExecution) {
		terms = append(terms, preferred.PodAffinityTerm)
	}
	return terms
}
