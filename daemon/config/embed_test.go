package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// annotationLimit is the size of all annotations of an object; client-side apply keeps the whole object there.
const annotationLimit = 256 << 10

func TestTheCRDsCanBeAppliedInEveryWay(t *testing.T) {
	for _, file := range []string{"crd/nodeimages.yaml", "crd/containerrecreaterequests.yaml"} {
		crd, err := Files.ReadFile(file)
		require.NoError(t, err)
		compact, err := yaml.YAMLToJSON(crd)
		require.NoError(t, err)
		assert.Less(t, len(compact), annotationLimit, file)
	}
}
