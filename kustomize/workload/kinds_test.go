package workload_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/workload"
)

func TestWorkloadsAreNamedAsInKubectl(t *testing.T) {
	for want, all := range map[string][][]string{
		"cloneset/web": {
			{"cloneset/web"}, {"CloneSet/web"}, {"clone", "web"}, {"clonesets", "web"},
			{"clonesets.apps.kruise.io/web"}, {"clonesets.v1alpha1.apps.kruise.io/web"},
		},
		"statefulset/web": {{"sts/web"}, {"asts/web"}, {"statefulsets.apps.kruise.io", "web"}},
		"daemonset/web":   {{"ads/web"}, {"daemon/web"}, {"ds", "web"}},
	} {
		for _, args := range all {
			named, err := workload.Parse(args)
			require.NoError(t, err, "%v", args)
			assert.Equal(t, want, named.String(), "%v", args)
		}
	}
}

func TestWhatNamesNoWorkloadIsMisuse(t *testing.T) {
	for text, args := range map[string][]string{
		"as KIND/NAME":                            {"web"},
		"as KIND/NAME, such":                      {"cloneset/"},
		`unknown kind "deployment"`:               {"deployment/web"},
		"daemonsets.apps is a built-in kind":      {"daemonsets.apps/web"},
		"statefulsets.v1.apps is a built-in kind": {"statefulsets.v1.apps", "web"},
		`invalid name "web/a"`:                    {"clone", "web/a"},
		"name one workload as KIND/NAM":           {"clone/web/a"},
	} {
		_, err := workload.Parse(args)
		require.ErrorContains(t, err, text, "%v", args)
		assert.Equal(t, cli.Misused, cli.CodeOf(err))
	}
}
