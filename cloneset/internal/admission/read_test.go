package admission

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/core/controllers/podtemplate"
)

// cluster answers lookups and remembers them.
type cluster struct {
	pods      []string
	templates int
	volumes   []string
	err       error
}

func (c *cluster) Pod(_ context.Context, key client.ObjectKey) (*corev1.Pod, error) {
	c.pods = append(c.pods, key.String())
	return nil, errors.New("not found")
}

func (c *cluster) Validate(_ context.Context, _ string, _ *corev1.PodTemplateSpec, _ *field.Path, volumes ...string) (field.ErrorList, error) {
	c.templates++
	c.volumes = volumes
	return nil, c.err
}

func (c *cluster) Default(_ context.Context, _ string, template *corev1.PodTemplateSpec, _ ...string) (*corev1.PodTemplateSpec, error) {
	return template, c.err
}

func (c *cluster) read(t *testing.T, set, old *v1beta1.CloneSet) Facts {
	t.Helper()
	facts, err := Reader{Pods: c, Templates: podtemplate.Validator{Cluster: c}}.Read(t.Context(), set, old, "v1beta1")
	require.NoError(t, err)
	return facts
}

func listing(names ...string) func(*v1beta1.CloneSet) {
	return func(set *v1beta1.CloneSet) { set.Spec.ScaleStrategy.PodsToDelete = names }
}

func TestOnlyNewlyListedPodsAreLookedUp(t *testing.T) {
	var c cluster
	facts := c.read(t, valid(listing("b", "c")), valid(listing("a", "b")))
	assert.Equal(t, []string{"shop/c"}, c.pods)
	require.EqualError(t, facts.Pods["c"].Err, "not found")
	assert.Len(t, facts.Pods, 1)
}

func TestTemplatesAreValidatedWhenNewOrChanged(t *testing.T) {
	image := func(set *v1beta1.CloneSet) { set.Spec.Template.Spec.Containers[0].Image = "nginx:2" }
	claims := func(set *v1beta1.CloneSet) {
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim("data")}
	}
	cases := []struct {
		name     string
		old, set *v1beta1.CloneSet
		want     int
	}{
		{"created", nil, valid(), 1},
		{"unchanged", valid(), valid(listing("a")), 0},
		{"another image", valid(), valid(image), 1},
		{"a claim template more", valid(), valid(claims), 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var asked cluster
			asked.read(t, c.set, c.old)
			assert.Equal(t, c.want, asked.templates)
		})
	}
}

func TestClaimTemplatesCountAsVolumes(t *testing.T) {
	var c cluster
	c.read(t, valid(func(set *v1beta1.CloneSet) {
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim("data")}
	}), nil)
	assert.Equal(t, []string{"data"}, c.volumes)
}

func TestNoAnswerIsAnError(t *testing.T) {
	c := cluster{err: errors.New("timeout")}
	_, err := Reader{Pods: &c, Templates: podtemplate.Validator{Cluster: &c}}.Read(t.Context(), valid(), nil, "v1beta1")
	assert.True(t, apierrors.IsServiceUnavailable(err))
	assert.ErrorContains(t, err, "timeout")
}
