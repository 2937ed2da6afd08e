package plan

import (
	"github.com/flotilla-project/flotilla/core/pods/inplace"
	"github.com/flotilla-project/flotilla/core/workloads/forecast"
	"github.com/flotilla-project/flotilla/core/workloads/podupdate"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

// Forecast returns the facts about an edit of a stored set that tell its effect on the pods. The options name the
// changes that a running pod allows in this cluster. A spec whose numbers are unreadable has no forecast. The nodes and
// pods are those that the status counts.
func Forecast(old, set *v1beta1.DaemonSet, can inplace.Options) forecast.Edit {
	desired := int(old.Status.DesiredNumberScheduled)
	n, err := readNumbers(set, desired, desired)
	if err != nil {
		return forecast.Edit{}
	}
	r := rollingUpdate(set)
	pods := min(old.Status.CurrentNumberScheduled, old.Status.DesiredNumberScheduled)
	can.DefaultPullPolicy = DefaultPullPolicy
	edit := forecast.Edit{
		From:           &old.Spec.Template,
		To:             &set.Spec.Template,
		Options:        can,
		Policy:         podupdate.ReCreate,
		Recreates:      "rollingUpdateType is " + string(v1beta1.StandardRollingUpdateType),
		Pods:           pods,
		Reached:        min(pods, int32(max(desired-n.partition, 0))),
		Behind:         max(pods-old.Status.UpdatedNumberScheduled, 0),
		MaxUnavailable: int32(n.maxUnavailable),
		MaxSurge:       int32(n.maxSurge),
		Paused:         paused(set),
		OnDelete:       onDelete(set),
	}
	if r.RollingUpdateType == v1beta1.InPlaceRollingUpdateType {
		edit.Policy = podupdate.InPlaceIfPossible
	}
	switch {
	case r.UnselectedNodePolicy == v1beta1.RevertUnselectedNodes && (r.Selector != nil || n.partition > 0): // to a former template it goes everywhere
		edit.Reached = -1
		edit.Where = "on the nodes that the update reaches"
	case r.Selector != nil && edit.Reached > 0:
		edit.Reached = -1
		edit.Where = "on nodes that the selector matches"
	}
	return edit
}
