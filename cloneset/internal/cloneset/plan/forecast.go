package plan

import (
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/flotilla-project/flotilla/core/pods/inplace"
	"github.com/flotilla-project/flotilla/core/workloads/forecast"
	"github.com/flotilla-project/flotilla/core/workloads/podupdate"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// Forecast returns the facts about an edit of a stored set that tell its effect on the pods. The options name the
// changes that a running pod allows in this cluster. A spec whose numbers are unreadable has no forecast.
func Forecast(old, set *v1beta1.CloneSet, can inplace.Options) forecast.Edit {
	n, err := readNumbers(set)
	if err != nil {
		return forecast.Edit{}
	}
	r := rollingUpdate(set)
	pods := min(n.replicas, old.Status.Replicas)
	policy := podupdate.Policy(r.PodUpdatePolicy)
	can.DefaultPullPolicy = DefaultPullPolicy
	can.CompareClaims = comparesClaims(can.CompareClaims, policy)
	return forecast.Edit{
		From:           &old.Spec.Template,
		To:             &set.Spec.Template,
		Options:        can,
		Policy:         policy,
		Recreates:      "podUpdatePolicy is ReCreate",
		ClaimsChange:   !equality.Semantic.DeepEqual(old.Spec.VolumeClaimTemplates, set.Spec.VolumeClaimTemplates),
		Pods:           pods,
		Reached:        min(pods, n.replicas-n.partition),
		Behind:         max(old.Status.Replicas-old.Status.UpdatedReplicas, 0),
		MaxUnavailable: n.maxUnavailable,
		MaxSurge:       n.maxSurge,
		Paused:         r.Paused,
		OnDelete:       onDelete(set),
	}
}
