package recreate_test

import (
	"testing"

	"github.com/flotilla-project/flotilla/core/testing/docs"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/containerstop"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/node"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/plan"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/result"
)

// Users look up in the feature's page, and in that of conditions and events, what requests and events say.
func TestThePageExplainsEveryWord(t *testing.T) {
	page := docs.Feature(t, "containerrecreaterequest", "reference/events")
	page.Names(plan.Reasons, result.Reasons, containerstop.Reasons)
	page.Quotes(plan.Messages, node.Messages)
}
