package daemon

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/cluster"
	"github.com/flotilla-project/flotilla/test/story"
)

// givenImage makes the demo application available as v1 of a repository that no node has pulled from.
func givenImage(t *testing.T, repository string) {
	t.Helper()
	publish(t, repository+":v1")
}

// publish makes the demo application available by another reference.
func publish(t *testing.T, reference string) {
	t.Helper()
	from, err := name.ParseReference(world.Cluster.Registry()+"/"+app+"v1", name.Insecure)
	require.NoError(t, err)
	image, err := remote.Image(from, remote.WithContext(t.Context()))
	require.NoError(t, err)
	require.NoError(t, world.Cluster.PushImage(t.Context(), reference, image))
}

// outage makes a repository unavailable until the test ends.
func outage(t *testing.T, repository string) {
	t.Helper()
	require.NoError(t, world.Cluster.CloseRepository(t.Context(), repository))
	t.Cleanup(func() { assert.NoError(t, world.Cluster.OpenRepository(contextOf(t), repository)) })
}

// nodeImage returns the NodeImage of the first node, and waits until it exists.
func nodeImage(t *testing.T) *v1beta1.NodeImage {
	t.Helper()
	o := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: world.Cluster.Node(0).Name()}}
	story.Reaches(t, world, o, "there", func(*v1beta1.NodeImage) error { return nil })
	return o
}

// wants requests tag v1 of the image on the first node, until the test ends.
func wants(t *testing.T, image string, change func(*v1beta1.ImageSpec)) {
	t.Helper()
	spec := v1beta1.ImageSpec{Tags: []v1beta1.ImageTagSpec{{
		Tag: "v1", CreatedAt: new(metav1.Now()),
		PullPolicy: &v1beta1.ImageTagPullPolicy{BackoffLimit: new(int32(1)), TTLSecondsAfterFinished: new(int32(600))},
	}}}
	if change != nil {
		change(&spec)
	}
	patchImage(t, image, &spec)
	t.Cleanup(func() { patchImage(t, image, nil) })
}

// patchImage sets the image in the NodeImage, and leaves other images unchanged.
func patchImage(t *testing.T, image string, spec *v1beta1.ImageSpec) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"images": map[string]any{image: spec}}})
	require.NoError(t, err)
	o := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: world.Cluster.Node(0).Name()}}
	require.NoError(t, world.Client.Patch(contextOf(t), o, client.RawPatch(types.MergePatchType, patch)))
}

// ends waits until the node has pulled tag v1 of the image, or has failed.
func ends(t *testing.T, image string) v1beta1.ImageTagStatus {
	t.Helper()
	var ended v1beta1.ImageTagStatus
	story.Reaches(t, world, nodeImage(t), image+" pulled", func(o *v1beta1.NodeImage) error {
		for _, tag := range o.Status.ImageStatuses[image].Tags {
			if tag.Tag == "v1" && tag.CompletionTime != nil {
				ended = tag
				return nil
			}
		}
		return fmt.Errorf("status is %+v", o.Status)
	})
	return ended
}

func TestEveryNodeHasANodeImage(t *testing.T) {
	t.Parallel()
	for _, node := range world.Cluster.Nodes() {
		o := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: node.Name()}}
		story.Reaches(t, world, o, "the agent's first look", func(o *v1beta1.NodeImage) error {
			first := o.Status.FirstSyncStatus
			return story.Want(first != nil && first.Status == v1beta1.SyncSucceeded, "first sync is %+v", first)
		})
		assert.Equal(t, node.Name(), o.Labels[corev1.LabelHostname])
	}
}

func TestAnImageIsPulled(t *testing.T) {
	t.Parallel()
	const image = "flotilla/ahead"
	givenImage(t, image)
	nodeImage(t)
	wants(t, image, nil)
	pulled := ends(t, image)
	assert.Equal(t, v1beta1.ImageSucceeded, pulled.Phase, pulled.Message)
	assert.EqualValues(t, 100, pulled.Progress)
	assert.Contains(t, pulled.ImageID, image+"@sha256:")
}

func TestAnEntryGoesWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()
	const image = "flotilla/brief"
	givenImage(t, image)
	o := nodeImage(t)
	wants(t, image, func(s *v1beta1.ImageSpec) { s.Tags[0].PullPolicy.TTLSecondsAfterFinished = new(int32(1)) })
	story.Reaches(t, world, o, "without the entry", func(o *v1beta1.NodeImage) error {
		_, wanted := o.Spec.Images[image]
		_, told := o.Status.ImageStatuses[image]
		return story.Want(!wanted && !told, "images are %v", o.Spec.Images)
	})
}

// A node that already has the image needs no registry if the pull policy allows that.
func TestAPresentImageNeedsNoRegistry(t *testing.T) {
	t.Parallel()
	const image = "flotilla/present"
	givenImage(t, image)
	nodeImage(t)
	wants(t, image, nil)
	require.Equal(t, v1beta1.ImageSucceeded, ends(t, image).Phase)

	outage(t, image)
	again := func(policy v1beta1.ImagePullPolicy, version int64) func(*v1beta1.ImageSpec) {
		return func(s *v1beta1.ImageSpec) {
			s.Tags[0].Version, s.Tags[0].ImagePullPolicy = version, policy
			s.Tags[0].PullPolicy.BackoffLimit = new(int32(0))
		}
	}
	for version, c := range []struct {
		policy v1beta1.ImagePullPolicy
		want   v1beta1.ImagePullPhase
	}{{v1beta1.PullIfNotPresent, v1beta1.ImageSucceeded}, {v1beta1.PullAlways, v1beta1.ImageFailed}} {
		wants(t, image, again(c.policy, int64(version)+1))
		story.Reaches(t, world, nodeImage(t), "version pulled", func(o *v1beta1.NodeImage) error {
			tags := o.Status.ImageStatuses[image].Tags
			return story.Want(len(tags) == 1 && tags[0].Version == int64(version)+1 && tags[0].Phase == c.want, "tags are %+v", tags)
		})
	}
}

func TestAnUnknownImageFails(t *testing.T) {
	t.Parallel()
	nodeImage(t)
	wants(t, "flotilla/nowhere", nil)
	pulled := ends(t, "flotilla/nowhere")
	assert.Equal(t, v1beta1.ImageFailed, pulled.Phase)
	assert.Contains(t, pulled.Message, "not found")
}

// A registry that is unavailable for a shorter time than the attempts take causes no failure.
func TestARegistryComesBack(t *testing.T) {
	t.Parallel()
	const image = "flotilla/outage"
	givenImage(t, image)
	o := nodeImage(t)
	outage(t, image)
	wants(t, image, func(s *v1beta1.ImageSpec) { s.Tags[0].PullPolicy.BackoffLimit = new(int32(20)) })
	story.Reaches(t, world, o, "trying", func(o *v1beta1.NodeImage) error {
		tags := o.Status.ImageStatuses[image].Tags
		return story.Want(len(tags) == 1 && tags[0].Phase == v1beta1.ImagePulling, "tags are %+v", tags)
	})
	require.NoError(t, world.Cluster.OpenRepository(t.Context(), image))
	assert.Equal(t, v1beta1.ImageSucceeded, ends(t, image).Phase)
}

// Private images are pulled with the Secrets of the entry, from the only namespace that agents read.
func TestPrivateImages(t *testing.T) {
	t.Parallel()
	nodeImage(t)
	for who, c := range map[string]struct {
		password string
		secrets  bool
		want     v1beta1.ImagePullPhase
	}{
		"with": {cluster.PrivatePassword, true, v1beta1.ImageSucceeded}, "wrong": {"wrong", true, v1beta1.ImageFailed}, "without": {"", false, v1beta1.ImageFailed},
	} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			image := "registry.example/" + cluster.PrivatePrefix + who
			givenImage(t, image)
			secret := givenSecret(t, "registry.example", c.password)
			wants(t, image, func(s *v1beta1.ImageSpec) {
				if c.secrets {
					s.PullSecrets = []v1beta1.SecretReference{{Namespace: secret.Namespace, Name: secret.Name}}
				}
			})
			pulled := ends(t, image)
			assert.Equal(t, c.want, pulled.Phase, pulled.Message)
			assert.NotContains(t, pulled.Message, c.password+"@")
		})
	}
}

// givenSecret creates a Secret with the private user's credentials for the host.
func givenSecret(t *testing.T, host, password string) *corev1.Secret {
	t.Helper()
	config, err := json.Marshal(map[string]any{"auths": map[string]any{
		host: map[string]string{"username": cluster.PrivateUser, "password": password},
	}})
	require.NoError(t, err)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "pull-", Namespace: v1beta1.DefaultConfigNamespace},
		Type:       corev1.SecretTypeDockerConfigJson,
		Data:       map[string][]byte{corev1.DockerConfigJsonKey: config},
	}
	require.NoError(t, world.Client.Create(t.Context(), secret))
	t.Cleanup(func() { assert.NoError(t, world.Client.Delete(contextOf(t), secret)) })
	return secret
}
