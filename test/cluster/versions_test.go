package cluster

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReleaseTellsHowToBuildItself(t *testing.T) {
	mod, err := os.ReadFile("testdata/release.mod")
	require.NoError(t, err)
	r, err := parseRelease("v1.37.2", mod)
	require.NoError(t, err)
	assert.Equal(t, release{
		version: "v1.37.2", language: "1.26.0", etcd: "v3.7.0",
		staging: []string{"k8s.io/api", "k8s.io/kubelet"},
	}, r)
	assertGolden(t, "testdata/build.mod.golden", r.buildModule())
	assert.Equal(t, "-s -w"+
		" -X k8s.io/component-base/version.gitVersion=v1.37.2"+
		" -X k8s.io/component-base/version.gitMajor=1"+
		" -X k8s.io/component-base/version.gitMinor=37"+
		" -X k8s.io/component-base/version.gitTreeState=clean"+
		" -X k8s.io/component-base/version.gitCommit=v1.37.2", r.linkerFlags())
}

func TestReleaseWithoutStagingModulesIsRefused(t *testing.T) {
	for name, mod := range map[string]string{
		"not a go.mod":       "<html>",
		"an ordinary module": "module example.com/x\n\ngo 1.26.0\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseRelease("v1.37.2", []byte(mod))
			assert.ErrorContains(t, err, "v1.37.2")
		})
	}
}
