package argocd_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-project/flotilla/test/argocd"
)

// decoded returns an object as Argo CD reads it.
func decoded(t *testing.T, text string) map[string]any {
	t.Helper()
	var object map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &object))
	return object
}

func TestActions(t *testing.T) {
	all, err := argocd.AllActions()
	require.NoError(t, err)
	const spec = "spec: {replicas: 3, template: {spec: {containers: [{name: main}]}}"
	for name, tt := range map[string]struct {
		kind, version, strategy string
		enabled                 []string
		action, want            string
	}{
		"a CloneSet is paused":                {"CloneSet", "v1beta1", "", []string{"pause", "restart"}, "pause", ", updateStrategy: {rollingUpdate: {paused: true}}}"},
		"a CloneSet of v1alpha1 is paused":    {"CloneSet", "v1alpha1", ", updateStrategy: {partition: 1}", []string{"pause", "restart"}, "pause", ", updateStrategy: {partition: 1, paused: true}}"},
		"a StatefulSet of v1alpha1 is paused": {"StatefulSet", "v1alpha1", "", []string{"pause", "restart"}, "pause", ", updateStrategy: {rollingUpdate: {paused: true}}}"},
		"a DaemonSet goes on":                 {"DaemonSet", "v1beta1", ", updateStrategy: {rollingUpdate: {paused: true, partition: 1}}", []string{"resume"}, "resume", ", updateStrategy: {rollingUpdate: {partition: 1}}}"},
		"a CloneSet of v1alpha1 goes on":      {"CloneSet", "v1alpha1", ", updateStrategy: {paused: true, partition: 1}", []string{"resume"}, "resume", ", updateStrategy: {partition: 1}}"},
	} {
		t.Run(name, func(t *testing.T) {
			actions := all[schema.GroupKind{Group: "apps.kruise.io", Kind: tt.kind}]
			head := "apiVersion: apps.kruise.io/" + tt.version + "\nkind: " + tt.kind + "\n" + spec
			object := decoded(t, head+tt.strategy+"}")

			enabled, err := actions.Enabled(object)
			require.NoError(t, err)
			var names []string
			for _, name := range []string{"pause", "restart", "resume"} {
				if enabled[name] {
					names = append(names, name)
				}
			}
			assert.Equal(t, tt.enabled, names)
			after, err := actions.Do(tt.action, object)
			require.NoError(t, err)
			assert.Equal(t, decoded(t, head+tt.want), after)
		})
	}
}

func TestARestartIsAnAnnotation(t *testing.T) {
	all, err := argocd.AllActions()
	require.NoError(t, err)
	require.Len(t, all, 3)
	for kind, actions := range all {
		after, err := actions.Do("restart", decoded(t, "kind: "+kind.Kind+"\nspec: {template: {spec: {containers: [{name: main}]}}}"))
		require.NoError(t, err)
		template := after["spec"].(map[string]any)["template"].(map[string]any)
		annotations := template["metadata"].(map[string]any)["annotations"].(map[string]any)
		assert.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`, annotations["kubectl.kubernetes.io/restartedAt"])
		assert.Contains(t, template, "spec")
	}
}
