package plan_test

import (
	"os"
	"testing"

	"github.com/flotilla-project/flotilla/daemonset/internal/daemonset"
	"github.com/flotilla-project/flotilla/daemonset/internal/daemonset/plan"
)

// The simulated worlds play the workload as the operator runs it.
func TestMain(m *testing.M) {
	plan.SetWorkload(daemonset.Workload)
	os.Exit(m.Run())
}
