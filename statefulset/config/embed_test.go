package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// annotationLimit is the size of all annotations of an object; client-side apply keeps the whole object there.
const annotationLimit = 256 << 10

func TestTheCRDCanBeAppliedInEveryWay(t *testing.T) {
	crd, err := Files.ReadFile("crd/statefulsets.yaml")
	require.NoError(t, err)
	compact, err := yaml.YAMLToJSON(crd)
	require.NoError(t, err)
	assert.Less(t, len(compact), annotationLimit)
}
