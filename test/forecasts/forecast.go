package forecasts

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/forecast"
	"github.com/flotilla-project/flotilla/kustomize/simulate"

	"github.com/flotilla-project/flotilla/test/story"
)

// of runs flotilla simulate for a workload that an edit changes from live to edited, with further arguments, and returns the
// forecast with the exit code.
func of(t *testing.T, w story.World, live, edited client.Object, args ...string) (*forecast.Report, cli.Code) {
	t.Helper()
	kubeconfig := w.Cluster.Kubeconfig()
	namespace := edited.GetNamespace()
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig, flags.Namespace = &kubeconfig, &namespace
	var out, errs bytes.Buffer
	command := simulate.NewCommand(flags, genericiooptions.IOStreams{Out: &out, ErrOut: &errs})
	command.SetArgs(append([]string{"-f", manifest(t, w, live, edited), "-o", "json"}, args...))
	command.SetErr(&errs)
	code := cli.Run(t.Context(), command)
	f := &forecast.Report{}
	require.NoError(t, json.Unmarshal(out.Bytes(), f), "%s%s", out.String(), errs.String())
	return f, code
}

// manifest writes a file that makes the edit when it is applied.
func manifest(t *testing.T, w story.World, live, edited client.Object) (file string) {
	t.Helper()
	kind, err := w.Client.GroupVersionKindFor(edited)
	require.NoError(t, err)
	spec := fields(t, edited)["spec"].(map[string]any)
	remove(fields(t, live)["spec"].(map[string]any), spec)
	text, err := json.Marshal(map[string]any{
		"apiVersion": kind.GroupVersion().String(),
		"kind":       kind.Kind,
		"spec":       spec,
		"metadata": map[string]any{
			"namespace": edited.GetNamespace(), "name": edited.GetName(), "labels": edited.GetLabels(), "annotations": edited.GetAnnotations(),
		},
	})
	require.NoError(t, err)
	file = filepath.Join(t.TempDir(), "edit.json")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	return file
}

func fields(t *testing.T, o client.Object) map[string]any {
	t.Helper()
	all, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	require.NoError(t, err)
	return all
}

// remove sets the fields to null that only live has: to apply a manifest without a field leaves the field alone.
func remove(live, edited map[string]any) {
	for name, value := range live {
		now, is := edited[name]
		if !is {
			edited[name] = nil
		}
		was, isObject := value.(map[string]any)
		if now, stays := now.(map[string]any); stays && isObject {
			remove(was, now)
		}
	}
}
