package cloneset

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/test/install"

	"github.com/flotilla-project/flotilla/test/story"
)

// Removing the operator changes no set and no pod, and after a new installation it continues.
func TestPodsOutliveTheOperator(t *testing.T) {
	set := newSet(world.Namespace(t), 2)
	givenSet(t, set)
	before := podsOf(t, set)

	out, err := world.Kubectl(t, "", "delete", "-k", "../../../cloneset/config/operator", "--wait=true")
	require.NoError(t, err, out)
	assert.Equal(t, story.Identities(before), story.Identities(story.Active(podsOf(t, set))))
	out, err = world.Kubectl(t, "", "-n", set.Namespace, "get", "clone", "web")
	require.NoError(t, err, out)

	require.NoError(t, install.Feature(t.Context(), world.Cluster, "cloneset", t.Output()))
	rolls(t, set, image("v2"))
	assert.Equal(t, story.Identities(before), story.Identities(podsOf(t, set)))
}
