package plan

import (
	"testing"

	"github.com/flotilla-project/flotilla/core/testing/docs"
)

// Users look up in the feature's page what events and statuses say.
func TestThePageExplainsEveryWord(t *testing.T) {
	page := docs.Feature(t, "broadcastjob")
	page.Names(Reasons)
	page.Quotes(Messages)
}
