package plan

import (
	"testing"

	"github.com/flotilla-project/flotilla/core/testing/docs"
)

// The page of the feature and that of conditions and events explain what users read of it.
func TestThePageNamesWhatUsersRead(t *testing.T) {
	docs.Feature(t, "imagepulljob", "reference/events-of-jobs").Names(Reasons)
}
