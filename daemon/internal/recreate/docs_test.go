package recreate_test

import (
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/core/testing/testenv"
)

// Users look up in the feature's page what requests and events say.
func TestThePageExplainsEveryWord(t *testing.T) {
	page, err := os.ReadFile("../../../docs/features/containerrecreaterequest.md")
	require.NoError(t, err)
	for _, words := range slices.Concat(
		testenv.Words(t, "plan/plan.go", `(?:Message\w+|reason\w+) += "(.+?)"`),
		testenv.Words(t, "node/judge.go", `message\w+ += "(.+?):?"`),
	) {
		assert.Contains(t, string(page), "`"+words)
	}
}
