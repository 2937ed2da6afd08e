package plan_test

import (
	"os"
	"testing"

	"github.com/flotilla-project/flotilla/cloneset/internal/cloneset"
	"github.com/flotilla-project/flotilla/cloneset/internal/cloneset/plan"
)

// The simulated worlds play the workload as the operator runs it.
func TestMain(m *testing.M) {
	plan.SetWorkload(cloneset.Workload)
	os.Exit(m.Run())
}
