package explain

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/kustomize/apply"
)

// refused finds writes that a quota or a budget refuses.
func refused(w World) []Finding {
	texts := complaints(w)
	return slices.Concat(quotas(w, texts), budgets(w, texts))
}

// complaints are the operator's messages about refused writes and about its reason to wait.
func complaints(w World) []string {
	var texts []string
	for _, c := range w.Set.Conditions {
		failed := strings.HasPrefix(c.Type, "Failed") && c.Status == "True"
		if failed || c.Type == "Ready" && c.Status == "False" {
			texts = append(texts, c.Message)
		}
	}
	return texts
}

func quotas(w World, texts []string) []Finding {
	var all []Finding
	for i := range w.Quotas {
		q := &w.Quotas[i]
		if !mentions(texts, "exceeded quota: "+q.Name+",") {
			continue
		}
		all = append(all, Finding{
			Why:     fmt.Sprintf("ResourceQuota %s refuses pods: %s.", q.Name, used(q)),
			Help:    "Raise the quota, or request less. The operator tries the write again.",
			Objects: []string{"resourcequota/" + q.Name},
		})
	}
	return all
}

// used names the resources of a quota with the used amount of each, those that are used up first.
func used(q *corev1.ResourceQuota) string {
	var full, rest []string
	for name, hard := range q.Status.Hard {
		amount := q.Status.Used[name]
		text := fmt.Sprintf("%s of %s %s used", amount.String(), hard.String(), name)
		if amount.Cmp(hard) >= 0 {
			full = append(full, text)
		} else {
			rest = append(rest, text)
		}
	}
	slices.Sort(full)
	slices.Sort(rest)
	if all := append(full, rest...); len(all) > 0 {
		return strings.Join(all, ", ")
	}
	return "its status has no numbers yet"
}

func budgets(w World, texts []string) []Finding {
	var all []Finding
	for _, b := range w.Budgets {
		named := mentions(texts, b.Name) && mentions(texts, b.Kind)
		if b.Allowed > 0 && !named || !named && (b.Kind != "PodUnavailableBudget" || w.Set.Old() == 0 || len(texts) == 0) {
			continue
		}
		all = append(all, Finding{
			Why:     fmt.Sprintf("%s %s allows %s to become unavailable now.", b.Kind, b.Name, apply.Count(b.Allowed, "more pod", "more pods")),
			Help:    "It allows more when pods become ready. Check the pods that are not ready, or change the budget.",
			Objects: []string{strings.ToLower(b.Kind) + "/" + b.Name},
		})
	}
	return all
}

func mentions(texts []string, part string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, part) })
}
