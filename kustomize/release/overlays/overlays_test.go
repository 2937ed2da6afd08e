package overlays_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/kustomize/release/images"
	"github.com/flotilla-project/flotilla/kustomize/release/overlays"
)

func TestManifestsRunWhatWasBuilt(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0", 64)
	manifests, err := overlays.Manifests("", "cloneset", []images.Image{{Reference: "127.0.0.1:7500/flotilla/cloneset-manager:dev", Digest: digest}})
	require.NoError(t, err)
	assert.Contains(t, string(manifests), "image: flotilla/cloneset-manager@"+digest)

	_, err = overlays.Manifests("", "no-such-feature", nil)
	assert.ErrorContains(t, err, "render overlay no-such-feature")
}

// A registry may have a path, and images may be named with it or without.
func TestManifestsNameTheRegistry(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0", 64)
	for _, reference := range []string{"registry.example/team/flotilla/cloneset-manager:dev", "flotilla/cloneset-manager:dev"} {
		manifests, err := overlays.Manifests("registry.example/team", "cloneset", []images.Image{{Reference: reference, Digest: digest}})
		require.NoError(t, err)
		assert.Contains(t, string(manifests), "image: registry.example/team/flotilla/cloneset-manager@"+digest)
	}
}
