package scale

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-project/flotilla/test/cluster"
)

// countedPods is enough for several passes over a workload, and few enough for a busy machine.
const countedPods = 30

func TestRequestsStayWithinTheirBounds(t *testing.T) {
	name := fmt.Sprintf("counts-%d", os.Getpid())
	if !cluster.Built(cluster.Options{Name: name, Simulated: true}, cluster.ControlPlane) {
		const missing = "the binaries are not built yet: run `go run ./test/cluster/cmd/cluster build`"
		if os.Getenv("CI") != "" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	bounds, err := BoundsOfRecord()
	require.NoError(t, err)
	ctrllog.SetLogger(logr.Discard())
	rows, err := Counts(t.Context(), name, Options{Pods: countedPods, Progress: t.Output()})
	require.NoError(t, err)
	for _, feature := range Features() {
		verdicts, err := bounds.JudgeCounts(feature, "", rows[feature])
		require.NoError(t, err)
		assert.NotEmpty(t, verdicts, feature)
		for _, v := range verdicts {
			assert.False(t, v.Broken(), "%s, %s: %s: %.3g, and the bound is %.3g", v.Feature, v.Load, v.Bound, v.Measured, v.Limit)
		}
		for _, r := range rows[feature] {
			t.Logf("%s, %s: writes %v, reads %v, Events %d", feature, r.Load, r.Writes, r.Reads, r.Events)
		}
	}
}

// A manager of the node agent would delete the NodeImages that the load of jobs makes for nodes that do not exist.
func TestPlayedProgramsStartLater(t *testing.T) {
	order := inOrder()
	assert.ElementsMatch(t, Features(), order)
	assert.Less(t, slices.Index(order, "jobs"), slices.Index(order, "daemon"))
}

// The last write of a feature with a mark is a minute after its load.
func TestFeaturesThatWriteLaterStartBeforeTheOthers(t *testing.T) {
	order := inOrder()
	assert.ElementsMatch(t, []string{"budget", "spread"}, order[1:3])
	for _, feature := range order[3:] {
		assert.Empty(t, features()[feature].mark, feature)
	}
}
