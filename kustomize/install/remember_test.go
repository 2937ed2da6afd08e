package install_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/install"
	"github.com/flotilla-project/flotilla/kustomize/test/clitest"
)

// What a user said of a feature, and says now, together.
func TestEarlierSettings(t *testing.T) {
	earlier := install.Settings{
		Registry: "old.example", Versions: map[string]string{"jobs": another(t, "jobs", "old")}, Components: []string{"highavailability"},
		Gates: map[string][]install.Gate{"jobs": {{Name: "ImagePullJobGate", On: true}, {Name: "SidecarTerminator", On: true}}}, OnlyNamespace: "team",
	}
	cases := []struct {
		name    string
		choices install.Choices
		want    install.Settings
	}{
		{"nothing is said", install.Choices{}, earlier},
		{"another registry", install.Choices{Registry: "new.example"}, install.Settings{
			Registry: "new.example", Versions: earlier.Versions, Components: earlier.Components, Gates: earlier.Gates, OnlyNamespace: "team",
		}},
		{"all else", install.Choices{
			Versions: []string{another(t, "jobs", "new")}, Components: []string{"networkpolicy", "highavailability"},
			Gates: []string{"ImagePullJobGate=false", "KruiseDaemon=true"}, OnlyNamespace: "other",
		}, install.Settings{
			Registry: "old.example", Versions: map[string]string{"jobs": another(t, "jobs", "new")}, Components: []string{"highavailability", "networkpolicy"},
			Gates:         map[string][]install.Gate{"jobs": {{Name: "SidecarTerminator", On: true}, {Name: "ImagePullJobGate"}, {Name: "KruiseDaemon", On: true}}},
			OnlyNamespace: "other",
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			features := selected(t, "jobs")
			chosen, err := install.Read(features, c.choices)
			require.NoError(t, err)

			assert.Equal(t, c.want, chosen.Over(features[0], earlier))
		})
	}
}

// managerOf returns the Deployment of the manager among the manifests.
func managerOf(t *testing.T, objects []*unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	for _, object := range objects {
		if object.GetKind() == "Deployment" {
			return object
		}
	}
	require.Fail(t, "there is no Deployment")
	return nil
}

// What is installed tells with which settings, for the feature that it is; its pods do not, so that nothing restarts.
func TestSettingsAreRecalled(t *testing.T) {
	features := selected(t, "cloneset", "jobs")
	chosen, err := install.Read(features, install.Choices{
		Registry: "registry.example", Versions: []string{"jobs=" + another(t, "jobs", "new")}, Components: []string{"highavailability", "sidecarterminator"},
		Without: []string{"pullsecrets"}, Gates: []string{"jobs:ImagePullJobGate=true"}, OnlyNamespace: "team",
	})
	require.NoError(t, err)
	objects, err := install.Manifests(features[1], chosen)
	require.NoError(t, err)
	manager := managerOf(t, objects)

	earlier, lost, err := install.Recall(features[1], manager)
	require.NoError(t, err)
	assert.Empty(t, lost)
	assert.Equal(t, chosen, earlier)
	_, found, err := unstructured.NestedString(manager.Object, "spec", "template", "metadata", "annotations", install.SettingsAnnotation)
	require.NoError(t, err)
	assert.False(t, found)

	objects, err = install.Manifests(features[0], chosen)
	require.NoError(t, err)
	other, _, err := install.Recall(features[0], managerOf(t, objects))
	require.NoError(t, err)
	assert.Equal(t, install.Settings{Registry: "registry.example", Components: []string{"highavailability"}, OnlyNamespace: "team"}, other)
}

func TestSettingsThatDoNotFit(t *testing.T) {
	feature := selected(t, "jobs")[0]
	manager := &unstructured.Unstructured{Object: map[string]any{"kind": "Deployment", "metadata": map[string]any{"name": "jobs-manager"}}}
	earlier, lost, err := install.Recall(feature, nil)
	require.NoError(t, err)
	assert.Empty(t, lost)
	assert.Empty(t, earlier, "nothing is installed")
	earlier, lost, err = install.Recall(feature, manager)
	require.NoError(t, err)
	assert.Empty(t, lost)
	assert.Empty(t, earlier, "installed by kubectl")

	manager.SetAnnotations(map[string]string{install.SettingsAnnotation: `{"registry": "a", "version": "v0.0.7", "manifests": "v0.0.6", "components": ["gone"], "without": ["gone"], "gates": [{"name": "Typo", "on": true}, {"name": "KruiseDaemon", "on": false}]}`})
	earlier, lost, err = install.Recall(feature, manager)
	require.NoError(t, err)
	assert.Equal(t, install.Settings{Registry: "a", Gates: map[string][]install.Gate{"jobs": {{Name: "KruiseDaemon"}}}}, earlier)
	assert.Equal(t, []string{
		"its operator has no feature gate Typo", "--version=v0.0.7 was set for manifests v0.0.6, and these are " + feature.Version, "component gone no longer exists",
		"--without=gone: no component of this name is installed by default",
	}, lost)

	manager.SetAnnotations(map[string]string{install.SettingsAnnotation: "?"})
	_, _, err = install.Recall(feature, manager)
	require.ErrorContains(t, err, "(--defaults discards them)")
}

func TestSettingsAreKept(t *testing.T) {
	clitest.NeedsServer(t)
	output, code := call(t, clitest.Administrator, "install", "jobs", "--wait=false", "--registry", "registry.example",
		"--component", "highavailability", "--feature-gates", "SidecarTerminator=true")
	require.Equal(t, cli.Done, code, output)
	assert.NotContains(t, output, "keeps")

	output, code = call(t, clitest.Administrator, "install", "jobs", "--diff")
	assert.Equal(t, cli.Done, code, output)
	assert.Contains(t, output, "jobs keeps --registry=registry.example --component=highavailability --feature-gates=SidecarTerminator=true (--defaults discards these settings)\n")
	tag := another(t, "jobs", "new")
	output, code = call(t, clitest.Administrator, "install", "jobs", "--wait=false", "--version", tag)
	require.Equal(t, cli.Done, code, output)
	manager, err := clitest.Objects(t).Resource(deployments).Namespace(install.Namespace).Get(t.Context(), "jobs-manager", metav1.GetOptions{})
	require.NoError(t, err)
	containers, _, err := unstructured.NestedSlice(manager.Object, "spec", "template", "spec", "containers")
	require.NoError(t, err)
	container, _ := containers[0].(map[string]any)
	assert.Equal(t, "registry.example/flotilla/jobs-manager:"+tag, container["image"])
	assert.Contains(t, container["args"], "--feature-gates=SidecarTerminator=true")

	output, code = call(t, clitest.Administrator, "install", "jobs", "--diff", "--defaults")
	assert.Equal(t, cli.NotSo, code, output)
	assert.NotContains(t, output, "keeps")
	assert.Contains(t, output, `"registry.example/flotilla/jobs-manager:`+tag+`" -> "release.example/flotilla/jobs-manager:`)
	assert.Contains(t, output, `- metadata.annotations: {"`+install.SettingsAnnotation)
	output, code = call(t, clitest.Administrator, "install", "jobs", "--registry", "")
	assert.Equal(t, cli.Misused, code)
	assert.Contains(t, output, "--registry must not be empty. To reset it, run with --defaults")
	output, code = call(t, clitest.Administrator, "uninstall", "jobs")
	require.Equal(t, cli.Done, code, output)
}
