package launch_test

import (
	"testing"

	"github.com/flotilla-project/flotilla/core/testing/docs"

	"github.com/flotilla-project/flotilla/daemon/internal/launch/plan"
)

// Users look up in the feature's page, and in that of conditions and events, what events and the log say.
func TestThePageExplainsEveryWord(t *testing.T) {
	docs.Feature(t, "container-launch-priority", "reference/events").Names(plan.Reasons)
}
