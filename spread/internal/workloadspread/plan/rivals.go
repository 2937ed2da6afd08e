package plan

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

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
