package plan

import (
	"testing"

	"github.com/flotilla-project/flotilla/core/testing/docs"
)

// The page of the feature explains what users read of it.
func TestThePageNamesWhatUsersRead(t *testing.T) {
	docs.Feature(t, "imagelistpulljob").Names(Reasons)
}
