package argocd_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/test/argocd"
)

// restarted is the annotation of a restart. Its value is a time.
const restarted = "kubectl.kubernetes.io/restartedAt"

// The tests that Argo CD's repository runs for each folder.
func TestActions(t *testing.T) {
	kinds := 0
	for _, c := range customizations(t) {
		if c.Actions == nil {
			continue
		}
		kinds++
		var all argocd.ActionTests
		require.NoError(t, c.Decode("actions/action_test.yaml", &all))
		for _, test := range all.DiscoveryTests {
			t.Run(c.Kind.Kind+" discovery "+test.InputPath, func(t *testing.T) {
				want := map[string]bool{}
				for _, action := range test.Result {
					want[action.Name] = !action.Disabled
				}
				enabled, err := c.Actions.Enabled(input(t, c, test.InputPath))
				require.NoError(t, err)
				assert.Equal(t, want, enabled)
			})
		}
		tested := map[string]bool{}
		for _, test := range all.ActionTests {
			tested[test.Action] = true
			t.Run(c.Kind.Kind+" "+test.Action+" "+test.InputPath, func(t *testing.T) {
				after, err := c.Actions.Do(test.Action, input(t, c, test.InputPath))
				require.NoError(t, err)
				want := input(t, c, test.ExpectedOutputPath)
				assert.Equal(t, withoutTime(t, want), withoutTime(t, after))
			})
		}
		assert.Len(t, tested, len(c.Actions.Definitions), "each action has a test")
	}
	assert.Equal(t, 3, kinds)
}

// input returns an object of a test of actions, which has the fields of its version.
func input(t *testing.T, c argocd.Customization, name string) map[string]any {
	t.Helper()
	object := decoded(t, c, "actions/"+name)
	_, version, _ := strings.Cut(object["apiVersion"].(string), "/")
	require.NoError(t, exists(c.Kind.Kind, version, object))
	return object
}

// withoutTime returns the object with a word in place of the time of its restart.
func withoutTime(t *testing.T, object map[string]any) map[string]any {
	t.Helper()
	template := object["spec"].(map[string]any)["template"].(map[string]any)
	annotations, _ := template["metadata"].(map[string]any)["annotations"].(map[string]any)
	if at, is := annotations[restarted].(string); is {
		assert.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`, at)
		annotations[restarted] = "then"
	}
	return object
}
