package plan

import (
	"github.com/flotilla-project/flotilla/core/pods/inplace"
	"github.com/flotilla-project/flotilla/core/workloads/forecast"
	"github.com/flotilla-project/flotilla/core/workloads/podupdate"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// Forecast returns the facts about an edit of a stored set that tell its effect on the pods. The options name the
// changes that a running pod allows in this cluster. A spec whose numbers are unreadable has no forecast.
func Forecast(old, set *v1beta1.StatefulSet, can inplace.Options) forecast.Edit {
	n, _, err := readNumbers(set, FeatureGates{})
	if err != nil {
		return forecast.Edit{}
	}
	r := rollingUpdate(set)
	pods := min(n.replicas, old.Status.Replicas)
	can.DefaultPullPolicy = DefaultPullPolicy
	return forecast.Edit{
		From:           &old.Spec.Template,
		To:             &set.Spec.Template,
		Options:        can,
		Policy:         podupdate.Policy(r.PodUpdatePolicy),
		Recreates:      "podUpdatePolicy is ReCreate",
		Pods:           pods,
		Reached:        min(pods, max(n.replicas-n.partition, 0)),
		Behind:         max(old.Status.Replicas-old.Status.UpdatedReplicas, 0),
		MaxUnavailable: int32(n.maxUnavailable),
		Paused:         r.Paused,
		OnDelete:       onDelete(set),
	}
}
