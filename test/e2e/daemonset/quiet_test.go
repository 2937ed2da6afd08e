package daemonset

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Requests for objects of others call no webhook of the operator, whether it runs or not.
func TestNobodyElseWaitsForTheOperator(t *testing.T) {
	nowhere := onNodesWith("example.io/nowhere")
	world.LeavesOthersAlone(t, "daemonset", func(namespace string) client.Object { return newSet(namespace, nowhere) })
}

// A new operator makes at most two passes over each set, and an idle one none: heartbeats of nodes concern it not.
func TestAnIdleOperatorDoesNothing(t *testing.T) {
	const sets = 5
	for range sets {
		givenSet(t, newSet(world.Namespace(t)))
	}
	world.StartsAndIdles(t, "daemonset", sets)
}
