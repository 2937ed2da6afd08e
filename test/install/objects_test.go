package install

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/kustomize/release/overlays"
)

func TestManagersAndAgentsAreAwaited(t *testing.T) {
	manifests, err := overlays.Manifests("", "cloneset", nil)
	require.NoError(t, err)
	running, err := workloads(manifests)
	require.NoError(t, err)
	assert.Equal(t, []string{"deployment/cloneset-manager"}, running)

	running, err = workloads([]byte(`
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
	manifests, err := overlays.Manifests("", "cloneset", nil)
	require.NoError(t, err)
	before, err := overlays.Objects(manifests)
	require.NoError(t, err)

	with, err := labelled(manifests, "made-by=demo")

	require.NoError(t, err)
	after, err := overlays.Objects(with)
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
