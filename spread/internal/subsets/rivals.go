package subsets

import (
	"cmp"

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
