package render_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
