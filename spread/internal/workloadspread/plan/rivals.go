package plan

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

// Precedes reports whether a pod that both spreads select belongs to the first: the older one, and of two that are as old
// as each other the one with the lower UID.
func Precedes(a, b *v1beta1.WorkloadSpread) bool {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID)) < 0
}

// Selects reports whether the filter of the spread selects a pod with the labels.
func Selects(spread *v1beta1.WorkloadSpread, pod map[string]string) bool {
	f := spread.Spec.TargetFilter
	if f == nil || f.Selector == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(f.Selector)
	return err == nil && selector.Matches(labels.Set(pod))
}

// Overlap describes the pods of the workload that belong to an older spread. They are none of this one's.
type Overlap struct {
	// Rival is the name of the older spread, empty for none.
	Rival string
	// Pods is how many pods it has, Of how many there are.
	Pods, Of int
}

// setOverlapped sets the condition of a spread of which an older one has pods.
func (c *computation) setOverlapped(next *v1beta1.WorkloadSpreadStatus) {
	if c.Overlap.Rival == "" {
		return
	}
	c.tell(next, v1beta1.Overlapped, metav1.ConditionTrue, v1beta1.ReasonOlderWorkloadSpread, fmt.Sprintf(
		"%d of %d pods belong to WorkloadSpread %s, which is older and has the same workload: delete one of the two",
		c.Overlap.Pods, c.Overlap.Of, c.Overlap.Rival))
}
