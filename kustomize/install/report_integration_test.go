package install_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/install"
	"github.com/flotilla-project/flotilla/kustomize/test/clitest"
)

// reportOf runs flotilla with -o json and returns the document on standard output, and the lines on standard error.
func reportOf(t *testing.T, args ...string) (report *cli.Report, lines string, code cli.Code) {
	t.Helper()
	var out bytes.Buffer
	var all clitest.Commands
	for _, command := range []func(genericclioptions.RESTClientGetter, genericiooptions.IOStreams) *cobra.Command{install.NewCommand, install.NewUninstallCommand} {
		all = append(all, func(flags genericclioptions.RESTClientGetter, streams genericiooptions.IOStreams) *cobra.Command {
			streams.Out = &out
			return command(flags, streams)
		})
	}
	lines, code = all.Call(t, clitest.Administrator, append(args, "--output=json")...)
	report = &cli.Report{}
	require.NoError(t, json.Unmarshal(out.Bytes(), report), "%s%s", out.String(), lines)
	assert.Equal(t, code, report.ExitCode)
	return report, lines, code
}

// actions returns what was done to the objects of some kinds.
func actions(report *cli.Report, kinds ...string) map[string]cli.Action {
	found := map[string]cli.Action{}
	for _, object := range report.Objects {
		for _, kind := range kinds {
			if object.Kind == kind {
				found[kind+" "+object.Name] = object.Action
			}
		}
	}
	return found
}

// A pipeline reads what an install and an uninstall did to each object, and what stays.
func TestReportsOfInstallAndUninstall(t *testing.T) {
	clitest.NeedsServer(t)
	t.Cleanup(func() { remove(t, "cloneset", "--delete-crds", "--yes") })

	report, lines, code := reportOf(t, "install", "cloneset", "--wait=false")
	require.Equal(t, cli.Done, code, lines)
	assert.Equal(t, "done", report.Verdict)
	assert.False(t, report.DryRun)
	assert.Contains(t, lines, "cloneset manager: ")
	assert.Equal(t, map[string]cli.Action{"Deployment cloneset-manager": cli.Created, "Service cloneset-webhook": cli.Created},
		actions(report, "Deployment", "Service"))
	assert.Contains(t, actions(report, "CustomResourceDefinition"), "CustomResourceDefinition clonesets.apps.kruise.io")
	var steps []string
	for _, step := range report.Steps {
		steps = append(steps, step.Feature+" "+step.Name)
	}
	assert.Subset(t, steps, []string{"cloneset CRDs", "cloneset RBAC", "cloneset manager", "cloneset webhooks"})

	report, lines, code = reportOf(t, "install", "cloneset", "--wait=false")
	require.Equal(t, cli.Done, code, lines)
	for _, object := range report.Objects {
		assert.Equal(t, cli.Unchanged, object.Action, object.Name)
	}

	require.NoError(t, clitest.Objects(t).Resource(deployments).Namespace("flotilla-system").Delete(t.Context(), "cloneset-manager", metav1.DeleteOptions{}))
	for flag, verdict := range map[string]string{"--diff": "negative", "--dry-run": "done"} {
		report, lines, _ = reportOf(t, "install", "cloneset", flag)
		assert.True(t, report.DryRun)
		assert.Equal(t, verdict, report.Verdict, lines)
		assert.Equal(t, cli.Created, actions(report, "Deployment")["Deployment cloneset-manager"])
	}

	report, _, code = reportOf(t, "uninstall", "cloneset", "--delete-crds")
	assert.Equal(t, cli.Misused, code)
	assert.Equal(t, "misused", report.Verdict)
	assert.Contains(t, report.Warnings, "clonesets.apps.kruise.io: 0 objects and their pods would be deleted")
	for _, args := range [][]string{{"--dry-run"}, nil} {
		report, lines, code = reportOf(t, append([]string{"uninstall", "cloneset"}, args...)...)
		require.Equal(t, cli.Done, code, lines)
		assert.Equal(t, args != nil, report.DryRun)
		assert.Equal(t, map[string]cli.Action{"Service cloneset-webhook": cli.Removed, "CustomResourceDefinition clonesets.apps.kruise.io": cli.Unchanged},
			actions(report, "Service", "CustomResourceDefinition"))
		assert.Contains(t, report.Left, "CustomResourceDefinition clonesets.apps.kruise.io")
	}

	_, code = call(t, clitest.Administrator, "install", "cloneset", "--dry-run=client", "--output=yaml")
	assert.Equal(t, cli.Misused, code)
}
