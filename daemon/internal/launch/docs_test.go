package launch_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Users look up in the feature's page what events say.
func TestThePageExplainsEveryEvent(t *testing.T) {
	page, err := os.ReadFile("../../../docs/features/container-launch-priority.md")
	require.NoError(t, err)
	text, err := os.ReadFile("plan/plan.go")
	require.NoError(t, err)
	found := regexp.MustCompile(`(?:Succeeded|Failed|EventTypeWarning, Reason): "(\w+)"`).FindAllStringSubmatch(string(text), -1)
	require.Len(t, found, 4)
	for _, words := range found {
		assert.Contains(t, string(page), "`"+words[1]+"`")
	}
}
