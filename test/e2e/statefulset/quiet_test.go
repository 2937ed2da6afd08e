package statefulset

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Requests for objects of others call no webhook of the operator, whether it runs or not.
func TestNobodyElseWaitsForTheOperator(t *testing.T) {
	world.LeavesOthersAlone(t, "statefulset", func(namespace string) client.Object { return newSet(namespace, 0) })
}

// A new operator makes at most two passes over each set, and an idle one none.
func TestAnIdleOperatorDoesNothing(t *testing.T) {
	const sets = 10
	for range sets {
		givenSet(t, newSet(world.Namespace(t), 1))
	}
	world.StartsAndIdles(t, "statefulset", sets)
}
