package plan

import (
	"testing"

	"github.com/flotilla-project/flotilla/core/testing/docs"
)

// The page of the feature explains what users read of it.
func TestThePageNamesWhatUsersRead(t *testing.T) {
	page := docs.Feature(t, "imagelistpulljob")
	page.Names(Reasons)
	page.Quotes(Messages)
}
