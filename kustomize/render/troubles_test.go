package render_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/flotilla-project/flotilla/kustomize/render"
)

// Issues 71, 849, 1191 and 1624 of OpenKruise: who wanted one feature got all of them, and the CRDs
// could not be had without the rest.
func TestOneFeatureIsInstalledAlone(t *testing.T) {
	for _, feature := range []string{"cloneset", "statefulset"} {
		t.Run(feature, func(t *testing.T) {
			var renderer render.Renderer
			manifests, err := renderer.Build(repository(t), "kustomize/overlays/"+feature)
			require.NoError(t, err)
			assert.Equal(t, 1, strings.Count("\n"+string(manifests), "\nkind: CustomResourceDefinition\n"))
			assert.Equal(t, 1, strings.Count("\n"+string(manifests), "\nkind: Deployment\n"))

			manifests, err = renderer.Build(repository(t), feature+"/config/crd")
			require.NoError(t, err)
			documents := strings.Split(string(manifests), "\n---\n")
			require.Len(t, documents, 1)
			assert.Contains(t, documents[0], "kind: CustomResourceDefinition\n")
			assert.Contains(t, documents[0], "\n  name: "+feature+"s.apps.kruise.io\n")
		})
	}
}

// The namespace admits every pod, for the node agent's sake. What a restricted one would ask of the managers
// they do by themselves.
func TestManagersRestrictThemselves(t *testing.T) {
	var renderer render.Renderer
	for _, feature := range []string{"cloneset", "daemon", "statefulset"} {
		manifests, err := renderer.Build(repository(t), "kustomize/overlays/"+feature)
		require.NoError(t, err)
		all, err := kio.FromBytes(manifests)
		require.NoError(t, err)
		deployments := 0
		for _, object := range all {
			if object.GetKind() != "Deployment" {
				continue
			}
			deployments++
			pod, err := object.Pipe(yaml.Lookup("spec", "template", "spec"))
			require.NoError(t, err)
			isRestricted(t, feature, pod)
		}
		assert.Equal(t, 1, deployments, feature)
	}
}

// isRestricted checks what pod security "restricted" does, as far as the managers have it at all.
func isRestricted(t *testing.T, feature string, pod *yaml.RNode) {
	t.Helper()
	for _, field := range []string{"hostNetwork", "hostPID", "hostIPC", "volumes", "initContainers", "ephemeralContainers"} {
		assert.Nil(t, pod.Field(field), "%s: %s", feature, field)
	}
	assert.Equal(t, "true", text(t, pod, "securityContext", "runAsNonRoot"), feature)
	assert.Equal(t, "RuntimeDefault", text(t, pod, "securityContext", "seccompProfile", "type"), feature)
	containers, err := pod.Field("containers").Value.Elements()
	require.NoError(t, err)
	for _, c := range containers {
		assert.Equal(t, "false", text(t, c, "securityContext", "allowPrivilegeEscalation"), feature)
		assert.Equal(t, "true", text(t, c, "securityContext", "readOnlyRootFilesystem"), feature)
		assert.Equal(t, "- ALL", text(t, c, "securityContext", "capabilities", "drop"), feature)
		for _, wider := range [][]string{{"privileged"}, {"procMount"}, {"capabilities", "add"}, {"seccompProfile"}, {"runAsNonRoot"}} {
			assert.Empty(t, text(t, c, append([]string{"securityContext"}, wider...)...), "%s: %s", feature, wider)
		}
		ports, err := c.Field("ports").Value.Elements()
		require.NoError(t, err)
		for _, port := range ports {
			assert.Nil(t, port.Field("hostPort"), feature)
		}
	}
}

// text is the YAML at a path, empty when there is none.
func text(t *testing.T, node *yaml.RNode, path ...string) string {
	t.Helper()
	found, err := node.Pipe(yaml.Lookup(path...))
	require.NoError(t, err)
	if found == nil {
		return ""
	}
	written, err := found.String()
	require.NoError(t, err)
	return strings.TrimSpace(written)
}
