package subsets

import (
	"math"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

// Conflict returns the keys of node labels that rule out all nodes for a pod together with the rules of a subset. It
// returns none if there can be a matching node, if the pod alone can have none, and if the subset's patch cannot be
// applied. For a pod with several required terms it returns the keys of the first term.
func Conflict(pod *corev1.Pod, subset *v1beta1.WorkloadSpreadSubset) []string {
	injected := pod.DeepCopy()
	if err := Inject(injected, subset, v1beta1.Match{}, nil); err != nil || len(impossible(&pod.Spec)) > 0 {
		return nil
	}
	return impossible(&injected.Spec)
}

// impossible returns the keys that rule out all nodes: of the first term, if each term has some.
func impossible(spec *corev1.PodSpec) (keys []string) {
	var own []corev1.NodeSelectorRequirement
	for key, value := range spec.NodeSelector {
		own = append(own, corev1.NodeSelectorRequirement{
			Key:      key,
			Operator: corev1.NodeSelectorOpIn,
			Values:   []string{value},
		})
	}
	terms := []corev1.NodeSelectorTerm{{}}
	if a := spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		terms = a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	}
	for i := range terms {
		wrong := append(contradictions(append(slices.Clone(own), terms[i].MatchExpressions...)), contradictions(terms[i].MatchFields)...)
		if len(wrong) == 0 {
			return nil
		}
		if i == 0 {
			keys = wrong
		}
	}
	return keys
}

// contradictions returns the keys of which no value, nor their absence, meets all requirements.
func contradictions(all []corev1.NodeSelectorRequirement) (keys []string) {
	byKey := map[string][]corev1.NodeSelectorRequirement{}
	for _, r := range all {
		byKey[r.Key] = append(byKey[r.Key], r)
	}
	for key, requirements := range byKey {
		if contradict(requirements) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// contradict reports whether no node meets all requirements, which are of one key.
func contradict(requirements []corev1.NodeSelectorRequirement) bool {
	absent := !slices.ContainsFunc(requirements, func(r corev1.NodeSelectorRequirement) bool { return !meets(nil, r) })
	if absent {
		return false
	}
	if i := slices.IndexFunc(requirements, func(r corev1.NodeSelectorRequirement) bool { return r.Operator == corev1.NodeSelectorOpIn }); i >= 0 {
		return !slices.ContainsFunc(requirements[i].Values, func(value string) bool { return meetsAll(&value, requirements) })
	}
	// Any value is possible: of texts there are always more than those that NotIn names, of numbers those between Gt and Lt.
	least, most := int64(math.MinInt64), int64(math.MaxInt64)
	for _, r := range requirements {
		bound, isNumber := boundOf(r)
		switch {
		case r.Operator == corev1.NodeSelectorOpDoesNotExist:
			return true
		case r.Operator == corev1.NodeSelectorOpGt && isNumber:
			least = max(least, bound+1)
		case r.Operator == corev1.NodeSelectorOpLt && isNumber:
			most = min(most, bound-1)
		}
	}
	return least > most
}

func meetsAll(value *string, requirements []corev1.NodeSelectorRequirement) bool {
	return !slices.ContainsFunc(requirements, func(r corev1.NodeSelectorRequirement) bool { return !meets(value, r) })
}

// meets reports whether a node with the value, or without a label if it is nil, meets a requirement.
func meets(value *string, r corev1.NodeSelectorRequirement) bool {
	switch r.Operator {
	case corev1.NodeSelectorOpDoesNotExist:
		return value == nil
	case corev1.NodeSelectorOpNotIn:
		return value == nil || !slices.Contains(r.Values, *value)
	case corev1.NodeSelectorOpIn:
		return value != nil && slices.Contains(r.Values, *value)
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		n, isNumber := numberOf(value)
		bound, ok := boundOf(r)
		return isNumber && ok && (r.Operator == corev1.NodeSelectorOpGt && n > bound || r.Operator == corev1.NodeSelectorOpLt && n < bound)
	case corev1.NodeSelectorOpExists:
	}
	return value != nil
}

// boundOf returns the number that Gt and Lt compare with.
func boundOf(r corev1.NodeSelectorRequirement) (int64, bool) {
	if len(r.Values) != 1 {
		return 0, false
	}
	return numberOf(&r.Values[0])
}

func numberOf(value *string) (int64, bool) {
	if value == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(*value, 10, 64)
	return n, err == nil
}
