package plan_test

import (
	"os"
	"testing"

	"github.com/flotilla-project/flotilla/statefulset/internal/statefulset"
	"github.com/flotilla-project/flotilla/statefulset/internal/statefulset/plan"
)

// The simulated worlds play the workload as the operator runs it.
func TestMain(m *testing.M) {
	plan.SetWorkload(statefulset.Workload)
	os.Exit(m.Run())
}
