package simulate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/scenarios"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
)

// courses of the small planner, right and wrong.
func course(b bugs) scenarios.Course {
	return scenarios.Course{
		Name: "a new image",
		Start: func(_ testing.TB, o cluster.Options) (*simulate.World, operator.Planner) {
			w := newWorld(o, 3)
			w.Edits(time.Second, simulate.Edit{What: "wants app:2", Do: func() { wants(w, "app:2") }})
			return w, &miniSet{bugs: b}
		},
		Arrived: func(t testing.TB, w *simulate.World) {
			t.Helper()
			for _, pod := range w.Pods() {
				assert.Equal(t, "app:2", pod.Spec.Containers[0].Image)
			}
		},
	}
}

func TestCoursesEndTheSameWhateverHappens(t *testing.T) {
	courses := []scenarios.Course{course(bugs{})}
	scenarios.CheckCrashes(t, courses)
	scenarios.CheckFaults(t, courses, 2)
	scenarios.CheckReplays(t, courses)
}

func TestWalksTellWhereTheyFail(t *testing.T) {
	walk := simulate.Walk{
		Count: 2, Faults: simulate.AllFaults, Describe: func(*simulate.World) string { return "three pods" },
		Start: func(t testing.TB, seed uint64) (*simulate.World, operator.Planner) {
			return course(bugs{}).Start(t, cluster.Options{Seed: seed})
		},
		Unarrived: func(*simulate.World) []string { return nil },
	}
	walk.Run(t)
	walk.Unarrived = func(*simulate.World) []string { return []string{"lost"} }
	failed := &failing{TB: t}
	assert.Panics(t, func() { walk.Play(failed, 7) })
	assert.Contains(t, failed.text, "did not arrive: lost")
	assert.Contains(t, failed.text, "-walk=7, spec three pods")
}

// failing is a test that fails without failing the one around it.
type failing struct {
	testing.TB
	text string
}

func (*failing) Helper() {}

func (f *failing) Errorf(format string, args ...any) { f.text += fmt.Sprintf(format, args...) }

func (f *failing) FailNow() { panic("failed") }
