package scenarios

import (
	"net/http"
	"testing"
	"time"

	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/retries"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
)

// CheckRefusedUpdates plays updates in place of which the server refuses a part for twenty minutes. start makes a
// workload of four pods that may be out of service n at a time; a minute after its start its user wants the images, one
// each second. arrived demands that it has what it wants. The judge of refused writes does the rest: pods serve and the
// status is quiet.
func CheckRefusedUpdates(t *testing.T, start func(t testing.TB, o cluster.Options, n string, images ...string) (*simulate.World, operator.Planner), arrived func(testing.TB, *simulate.World)) {
	t.Helper()
	play := func(f retries.Refused, n string, images ...string) {
		t.Helper()
		w, p := start(t, cluster.Options{Seed: 1, Calm: true}, n, images...)
		f.Until = 20 * time.Minute
		simulate.SettleUnder(t, w, p, simulate.Faults{Seed: 1, Refused: []retries.Refused{f}}, 5000)
		arrived(t, w)
	}
	// One pod is tried after the other.
	for _, code := range retries.AnswerCodes() {
		play(retries.Refused{Write: "patch spec of Pod", Code: code}, "2", "app:2")
	}
	// The next revision cannot be recorded while pods are in the middle of their update to the one before.
	play(retries.Refused{Write: "create ControllerRevision", Code: http.StatusUnprocessableEntity, From: time.Minute + 500*time.Millisecond}, "4", "app:2", "app:3")
}
