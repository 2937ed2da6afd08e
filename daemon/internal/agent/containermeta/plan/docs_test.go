package plan

import (
	"testing"

	"github.com/flotilla-project/flotilla/core/testing/docs"
)

// Users look up in the page of in-place updates what events of the agent say.
func TestThePageExplainsEveryReason(t *testing.T) {
	docs.Feature(t, "cloneset", "concepts/in-place-updates").Names(Reasons)
}
