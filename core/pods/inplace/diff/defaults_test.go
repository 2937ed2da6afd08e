package diff

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/pods/podspec"
)

// Templates differ in what they say when one was defaulted by OpenKruise and the other is as written.
func TestDefaultsAreNoDifference(t *testing.T) {
	written := templateOf("app")
	written.Spec.Volumes = []corev1.Volume{{Name: "tmp"}}
	written.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80}}
	written.Spec.Containers[0].ReadinessProbe = &corev1.Probe{}
	defaulted := variant(written, func(t *corev1.PodTemplateSpec) { podspec.Default(&t.Spec, podspec.PullAlways) })
	newImage := func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = "app:v2" }
	before := defaulted.DeepCopy()

	for name, ends := range map[string][2]*corev1.PodTemplateSpec{
		"defaults left out": {defaulted, variant(written, newImage)},
		"defaults written":  {written, variant(defaulted, newImage)},
	} {
		_, err := Templates(revisionOf("w-1", ends[0]), revisionOf("w-2", ends[1]), Options{DefaultPullPolicy: podspec.PullAlways})
		require.NoError(t, err, name)
	}
	assert.Equal(t, before, defaulted, "nothing is written to a template")
}

func TestAbsentPullPolicyReadsAsTheKindSays(t *testing.T) {
	with := func(image string, policy corev1.PullPolicy) *corev1.PodTemplateSpec {
		return variant(templateOf("app"), func(t *corev1.PodTemplateSpec) {
			t.Spec.Containers[0].Image, t.Spec.Containers[0].ImagePullPolicy = image, policy
		})
	}
	for name, c := range map[string]struct {
		from, to *corev1.PodTemplateSpec
		absent   podspec.DefaultPullPolicy
		possible bool
	}{
		"always, written out":      {with("app:v1", ""), with("app:v2", corev1.PullAlways), podspec.PullAlways, true},
		"always, another one":      {with("app:v1", ""), with("app:v2", corev1.PullIfNotPresent), podspec.PullAlways, false},
		"by tag, written out":      {with("app:v1", ""), with("app:v2", corev1.PullIfNotPresent), podspec.ServerDefault, true},
		"by tag, another one":      {with("app:v1", ""), with("app:v2", corev1.PullAlways), podspec.ServerDefault, false},
		"absent from both":         {with("app:v1", ""), with("app:latest", ""), podspec.ServerDefault, true},
		"of the tag before it was": {with("app:latest", ""), with("app:v2", corev1.PullAlways), podspec.ServerDefault, true},
	} {
		_, err := Templates(revisionOf("w-1", c.from), revisionOf("w-2", c.to), Options{DefaultPullPolicy: c.absent})
		assert.Equal(t, c.possible, err == nil, "%s: %v", name, err)
	}
}
