package launch_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/core/testing/testenv"
)

// Users look up in the feature's page what events say.
func TestThePageExplainsEveryEvent(t *testing.T) {
	page, err := os.ReadFile("../../../docs/features/container-launch-priority.md")
	require.NoError(t, err)
	words := testenv.Words(t, "plan/plan.go", `(?:Succeeded|Failed|EventTypeWarning, Reason): "(\w+)"`)
	require.Len(t, words, 4)
	for _, word := range words {
		assert.Contains(t, string(page), "`"+word+"`")
	}
}
