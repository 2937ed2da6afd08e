package podtemplate_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-project/flotilla/core/pods/podspec"
)

// defaulted returns the template as the server defaults it.
func defaulted(t *testing.T, template *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	t.Helper()
	o := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "defaults"}, Template: *template.DeepCopy()}
	require.NoError(t, env.Client(t).Create(t.Context(), o, client.DryRunAll))
	return &o.Template
}

// A default that only one of both has would make a revision as it was written differ from the same revision as the server
// returns it, and recreate pods.
func TestTheServerHasTheDefaultsOfPodSpecs(t *testing.T) {
	text, err := os.ReadFile("../../pods/podspec/testdata/written.yaml")
	require.NoError(t, err)
	var written corev1.PodTemplateSpec
	require.NoError(t, yaml.UnmarshalStrict(text, &written))
	assert.True(t, podspec.Equal(&written, defaulted(t, &written), podspec.ServerDefault))

	for name, template := range map[string]*corev1.PodTemplateSpec{
		"as little as there can be": {ObjectMeta: written.ObjectMeta, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "app:1"}}}},
		"all that has a default":    &written,
	} {
		t.Run(name, func(t *testing.T) {
			template.Spec.HostNetwork = false // host ports are given to pods, and not to templates
			server, ours := defaulted(t, template), template.DeepCopy()
			podspec.Default(&ours.Spec, podspec.ServerDefault)
			assert.Equal(t, asYAML(t, server.Spec), asYAML(t, ours.Spec))
		})
	}
}

func asYAML(t *testing.T, spec corev1.PodSpec) string {
	t.Helper()
	text, err := yaml.Marshal(spec)
	require.NoError(t, err)
	return string(text)
}
