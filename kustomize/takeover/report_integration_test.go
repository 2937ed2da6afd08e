package takeover_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/takeover"
	"github.com/flotilla-project/flotilla/kustomize/test/clitest"
)

// reportOf runs a takeover of spreads with -o json and returns the document on standard output.
func reportOf(t *testing.T, args ...string) (report *cli.Report, results map[string]string, actions map[string]cli.Action) {
	t.Helper()
	var out bytes.Buffer
	command := func(flags genericclioptions.RESTClientGetter, streams genericiooptions.IOStreams) *cobra.Command {
		streams.Out = &out
		return takeover.NewCommand(flags, streams)
	}
	args = append([]string{"takeover", "spread", "--wait=false", "--settle=0", "--timeout=10m", "--output=json"}, args...)
	lines, code := clitest.Commands{command}.Call(t, clitest.Administrator, args...)
	report, results, actions = &cli.Report{}, map[string]string{}, map[string]cli.Action{}
	require.NoError(t, json.Unmarshal(out.Bytes(), report), "%s%s", out.String(), lines)
	assert.Equal(t, code, report.ExitCode)
	for _, step := range report.Steps {
		results[step.Name] = step.Result
	}
	for _, object := range report.Objects {
		actions[object.Kind+" "+object.Name] = object.Action
	}
	return report, results, actions
}

// A pipeline reads what a takeover plans, and what it and the way back did to each object.
func TestReportsOfTakeovers(t *testing.T) {
	clitest.NeedsServer(t)
	manager(t)
	account(t)
	t.Cleanup(func() { withoutCRD(t, "workloadspreads.apps.kruise.io") })

	report, results, actions := reportOf(t, "--dry-run")
	assert.True(t, report.DryRun)
	assert.Equal(t, "planned", results["CustomResourceDefinition workloadspreads.apps.kruise.io: new"])
	assert.Contains(t, report.Warnings, "spread: OpenKruise's manager tries these writes again and logs each rejection")
	assert.Empty(t, actions)

	patch := filepath.Join(t.TempDir(), "patch.yaml")
	require.NoError(t, os.WriteFile(patch, []byte(`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "spread-manager",
		"namespace": "flotilla-system"}, "spec": {"template": {"spec": {"nodeSelector": {"beta.kubernetes.io/os": "linux"}}}}}`), 0o600))
	report, results, actions = reportOf(t, "--patch", patch)
	assert.Equal(t, "done", report.Verdict, report.Error)
	assert.Contains(t, report.Warnings, `spec.template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead`)
	for _, step := range []string{"start the operator", "reject writes of the old manager", "turn its feature gates off", "install"} {
		assert.Equal(t, "done", results[step], step)
	}
	for object, want := range map[string]cli.Action{
		"ValidatingAdmissionPolicy flotilla-takeover-spread": cli.Created, "Deployment spread-manager": cli.Created,
		"Deployment kruise-controller-manager": cli.Configured, "CustomResourceDefinition workloadspreads.apps.kruise.io": cli.Created,
	} {
		assert.Equal(t, want, actions[object], object)
	}

	report, results, actions = reportOf(t, "--undo")
	assert.Equal(t, "done", report.Verdict, report.Error)
	assert.Equal(t, "done", results["remove the operator"])
	for object, want := range map[string]cli.Action{
		"ValidatingAdmissionPolicy flotilla-takeover-spread": cli.Removed, "Deployment spread-manager": cli.Removed,
		"Deployment kruise-controller-manager": cli.Configured, "ConfigMap flotilla-takeover-spread": cli.Removed,
	} {
		assert.Equal(t, want, actions[object], object)
	}

	report, _, _ = reportOf(t, "--undo")
	assert.Equal(t, "failed", report.Verdict)
	assert.Contains(t, report.Error, "the feature was not taken over, or was given back")
}
