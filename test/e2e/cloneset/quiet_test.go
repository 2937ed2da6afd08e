package cloneset

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Whatever others create, change and delete waits for no webhook of the operator, be it alive or dead.
func TestNobodyElseWaitsForTheOperator(t *testing.T) {
	world.LeavesOthersAlone(t, "cloneset", func(namespace string) client.Object { return newSet(namespace, 0) })
}

// A start looks at each set at most twice, and an idle operator does nothing at all.
func TestAnIdleOperatorDoesNothing(t *testing.T) {
	const sets = 10
	for range sets {
		givenSet(t, newSet(world.Namespace(t), 1))
	}
	world.StartsAndIdles(t, "cloneset", sets)
}
