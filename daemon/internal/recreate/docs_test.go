package recreate_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Users look up in the feature's page what requests and events say.
func TestThePageExplainsEveryWord(t *testing.T) {
	page, err := os.ReadFile("../../../docs/features/containerrecreaterequest.md")
	require.NoError(t, err)
	var missing []string
	for file, pattern := range map[string]string{
		"plan/plan.go":  `(?:Message\w+|reason\w+) += "(.+?)"`,
		"node/judge.go": `message\w+ += "(.+?):?"`,
	} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		found := regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1)
		require.NotEmpty(t, found, file)
		for _, words := range found {
			if !strings.Contains(string(page), "`"+words[1]) {
				missing = append(missing, words[1])
			}
		}
	}
	assert.Empty(t, missing)
}
