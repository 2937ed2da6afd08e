package quickstart

import (
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/kustomize/release/images"

	"github.com/flotilla-project/flotilla/test/story"
)

var world story.World

func TestMain(m *testing.M) { world.Run(m, story.Suite{}) }

// givenImage makes a version of the demo application available as another image: the cluster's registry answers for all
// registries, and nodes can pull from no other one.
func givenImage(t *testing.T, version, reference string) {
	t.Helper()
	from, err := name.ParseReference(world.Cluster.Registry()+"/"+images.DemoApp+":"+version, name.Insecure)
	require.NoError(t, err)
	image, err := remote.Image(from, remote.WithContext(t.Context()))
	require.NoError(t, err)
	require.NoError(t, world.Cluster.PushImage(t.Context(), reference, image))
}
