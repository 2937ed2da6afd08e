package plan

import (
	"testing"

	"github.com/flotilla-project/flotilla/core/testing/docs"
)

// Users look up in the feature's page, and in that of conditions and events, what events and statuses say.
func TestThePageExplainsEveryWord(t *testing.T) {
	page := docs.Feature(t, "broadcastjob", "reference/events-of-jobs")
	page.Names(Reasons)
	page.Quotes(Messages)
}
