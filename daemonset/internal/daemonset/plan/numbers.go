package plan

import (
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/workloads/rollout"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

// defaultBurst is how an absent spec.burstReplicas reads.
const defaultBurst = 250

// numbers are the counts that the spec asks for, with percentages resolved.
type numbers struct {
	partition      int // nodes that are not updated
	maxUnavailable int // nodes with a pod that may be out of service
	maxSurge       int // nodes that may have an old and a new pod; 0 without surge
	burst          int // pods that are created, deleted or updated in place in a pass, each
}

// readNumbers resolves the spec's numbers for so many nodes that should run a pod, of which most percentages are
// shares, and so many that take part in updates, of which partition is one: a node that is tainted or lost changes it
// only when its pod goes. The fields of rollingUpdate count only with type RollingUpdate.
//
//	25% of 10 nodes: maxUnavailable and maxSurge 3, partition 2. 10% of 5 nodes: burst 1.
func readNumbers(set *v1beta1.DaemonSet, desired, takingPart int) (numbers, error) {
	r := rollingUpdate(set)
	var n numbers
	if r.MaxUnavailable == nil && r.MaxSurge == nil {
		r.MaxUnavailable = new(intstr.FromInt32(1))
	}
	burst := ptr.Deref(set.Spec.BurstReplicas, intstr.FromInt32(defaultBurst))
	for _, amount := range []struct {
		field    string
		value    *intstr.IntOrString
		of       int
		rounding rollout.Rounding
		into     *int
	}{
		{"maxUnavailable", r.MaxUnavailable, desired, rollout.RoundUp, &n.maxUnavailable},
		{"maxSurge", r.MaxSurge, desired, rollout.RoundUp, &n.maxSurge},
		{"partition", r.Partition, takingPart, rollout.RoundDown, &n.partition},
		{"burstReplicas", &burst, desired, rollout.RoundDown, &n.burst},
	} {
		if amount.value == nil {
			continue
		}
		v, err := rollout.Scaled(amount.field, *amount.value, int32(amount.of), amount.rounding)
		if err != nil {
			return n, err
		}
		*amount.into = int(max(v, 0))
	}
	n.burst = max(n.burst, 1)
	if n.maxUnavailable == 0 && n.maxSurge == 0 && desired > 0 {
		n.maxUnavailable = 1
	}
	return n, nil
}

// surges reports whether a new pod comes before the old one goes, whatever the number of nodes.
func surges(set *v1beta1.DaemonSet) bool {
	surge := rollingUpdate(set).MaxSurge
	if surge == nil {
		return false
	}
	n, err := rollout.Scaled("maxSurge", *surge, 1, rollout.RoundUp)
	return err == nil && n > 0
}

// rollingUpdate is spec.updateStrategy.rollingUpdate, empty where absent or without effect.
func rollingUpdate(set *v1beta1.DaemonSet) v1beta1.RollingUpdateDaemonSet {
	if r := set.Spec.UpdateStrategy.RollingUpdate; r != nil && !onDelete(set) {
		return *r
	}
	return v1beta1.RollingUpdateDaemonSet{}
}

func inPlaceStrategy(set *v1beta1.DaemonSet) v1beta1.InPlaceUpdateStrategy {
	return ptr.Deref(rollingUpdate(set).InPlaceUpdateStrategy, v1beta1.InPlaceUpdateStrategy{})
}

func onDelete(set *v1beta1.DaemonSet) bool {
	return set.Spec.UpdateStrategy.Type == v1beta1.OnDeleteStrategyType
}

func paused(set *v1beta1.DaemonSet) bool { return ptr.Deref(rollingUpdate(set).Paused, false) }

// allowance is the room that spec.burstReplicas leaves in a pass.
type allowance struct{ creations, deletions, inPlace int }

// spend takes one of the rest for the actions of the step, and notes on it where nothing is left.
func spend(step *action.Step, left *int) bool {
	if *left == 0 {
		step.More = true
		return false
	}
	*left--
	return true
}

// addRest adds a step that shares the burst with steps before it. Where these have used it up, the last of them shows
// that more is wanted.
func (p *pass) addRest(step action.Step) {
	if steps := p.plan.Steps; len(step.Actions) == 0 && step.More && len(steps) > 0 {
		steps[len(steps)-1].More = true
	}
	p.plan.Add(step)
}
