package install

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/test/images"
)

func TestManifestsRunWhatWasBuilt(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0", 64)
	manifests, err := Manifests("cloneset", images.Image{Reference: "127.0.0.1:7500/flotilla/cloneset-manager:dev", Digest: digest})
	require.NoError(t, err)
	assert.Contains(t, string(manifests), "image: flotilla/cloneset-manager@"+digest)
	running, err := workloads(manifests)
	require.NoError(t, err)
	assert.Equal(t, []string{"deployment/cloneset-manager"}, running)

	_, err = Manifests("no-such-feature")
	assert.ErrorContains(t, err, "render overlay no-such-feature")
}

// A registry may have a path, and images may be named with it or without.
func TestManifestsNameTheRegistry(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0", 64)
	for _, reference := range []string{"registry.example/team/flotilla/cloneset-manager:dev", "flotilla/cloneset-manager:dev"} {
		manifests, err := ManifestsFrom("registry.example/team", "cloneset", images.Image{Reference: reference, Digest: digest})
		require.NoError(t, err)
		assert.Contains(t, string(manifests), "image: registry.example/team/flotilla/cloneset-manager@"+digest)
	}
}

func TestManagersAndAgentsAreAwaited(t *testing.T) {
	running, err := workloads([]byte(`
kind: Namespace
apiVersion: v1
metadata: {name: flotilla-system}
---
kind: Deployment
apiVersion: apps/v1
metadata: {name: daemon-manager}
---
kind: DaemonSet
apiVersion: apps/v1
metadata: {name: daemon-agent}
`))
	require.NoError(t, err)
	assert.Equal(t, []string{"deployment/daemon-manager", "daemonset/daemon-agent"}, running)
}

// What a demo has installed has its label, with which a later demo knows it.
func TestManifestsAreLabelled(t *testing.T) {
	manifests, err := Manifests("cloneset")
	require.NoError(t, err)
	before, err := Objects(manifests)
	require.NoError(t, err)

	with, err := labelled(manifests, "made-by=demo")

	require.NoError(t, err)
	after, err := Objects(with)
	require.NoError(t, err)
	require.Len(t, after, len(before))
	for i := range after {
		labels := after[i].GetLabels()
		assert.Equal(t, "demo", labels["made-by"])
		delete(labels, "made-by")
		after[i].SetLabels(labels)
		assert.Equal(t, before[i].GetLabels(), after[i].GetLabels())
	}
}
