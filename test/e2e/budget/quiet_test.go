package budget

import (
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Only requests for pods of namespaces that have a budget call the operator, whether it runs or not.
func TestNobodyElseWaitsForTheOperator(t *testing.T) {
	n := 0
	world.LeavesOthersAlone(t, "budget", func(namespace string) client.Object {
		b := atLeast(namespace, 1)
		n++
		b.Spec.Selector.MatchLabels = map[string]string{"app": fmt.Sprintf("web-%d", n)} // no two select the same pods
		return b
	})
}
