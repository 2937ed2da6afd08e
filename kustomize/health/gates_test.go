package health

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// withArgs gives the manager of jobs these arguments.
func withArgs(t *testing.T, args ...any) *Report {
	t.Helper()
	return installed(t, "jobs", func(live map[string]*unstructured.Unstructured) {
		manager := live["Deployment flotilla-system/jobs-manager"]
		containers, _, _ := unstructured.NestedSlice(manager.Object, "spec", "template", "spec", "containers")
		containers[0].(map[string]any)["args"] = args
		require.NoError(t, unstructured.SetNestedSlice(manager.Object, containers, "spec", "template", "spec", "containers"))
	})
}

// The old pod of a Deployment goes on, and nothing else shows that the new one does not start.
func TestGatesThatAManagerRefuses(t *testing.T) {
	report := withArgs(t, "--v=4", "--feature-gates=SidecarTerminator=true,Typo=true", "--feature-gates", "AllAlpha=maybe",
		"--feature-gates=KruiseDaemon", "--feature-gates=AllBeta=false,CloneSetShortHash=true, EnhancedLivenessProbe=1")

	found := gates(report)

	const of = "Deployment flotilla-system/jobs-manager has feature gate "
	const end = ": its new pods end with an error"
	assert.Equal(t, []Finding{
		{
			About: "jobs", Trouble: of + "Typo=true, and version v0.1.0 has no such gate" + end,
			Help: "Remove the feature gate: flotilla install jobs --feature-gates Typo-",
		},
		{
			About: "jobs", Trouble: of + "AllAlpha=maybe, and version v0.1.0 accepts only true and false as values" + end,
			Help: "Remove the feature gate: flotilla install jobs --feature-gates AllAlpha-",
		},
		{
			About: "jobs", Trouble: of + "KruiseDaemon, and version v0.1.0 needs NAME=true or NAME=false" + end,
			Help: "Remove the feature gate: flotilla install jobs --feature-gates KruiseDaemon-",
		},
	}, found)

	report.Newer = true
	assert.Empty(t, gates(report), "a newer manager may know them")
}
