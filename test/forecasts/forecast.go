package simulate

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/forecast"
	"github.com/flotilla-project/flotilla/kustomize/simulate"
)

// foretell runs flotilla simulate for an object as an edit leaves it, and returns the forecast with the exit code.
func foretell(t *testing.T, o client.Object, args ...string) (*forecast.Report, cli.Code) {
	t.Helper()
	manifest := o.DeepCopyObject().(client.Object)
	kind, err := world.Client.GroupVersionKindFor(manifest)
	require.NoError(t, err)
	manifest.GetObjectKind().SetGroupVersionKind(kind)
	manifest.SetManagedFields(nil)
	manifest.SetResourceVersion("")
	text, err := json.Marshal(manifest)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "edit.json")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	flags := genericclioptions.NewConfigFlags(true)
	kubeconfig, namespace := world.Cluster.Kubeconfig(), o.GetNamespace()
	flags.KubeConfig, flags.Namespace = &kubeconfig, &namespace
	var out, errs bytes.Buffer
	command := simulate.NewCommand(flags, genericiooptions.IOStreams{Out: &out, ErrOut: &errs})
	command.SetArgs(append([]string{"-f", file, "-o", "json"}, args...))
	command.SetErr(&errs)
	code := cli.Run(t.Context(), command)
	f := &forecast.Report{}
	require.NoError(t, json.Unmarshal(out.Bytes(), f), "%s%s", out.String(), errs.String())
	assert.Empty(t, f.Assumed)
	return f, code
}

// foretold is the record that a forecast promises.
func foretold(f *forecast.Report) record {
	r := record{InPlace: f.InPlace, Recreated: f.Recreated, Added: f.Added, Removed: f.Removed, Lowest: f.LowestAvailable, Most: f.MostPods}
	for _, b := range f.Batches {
		r.Order = append(r.Order, b.Pods...)
	}
	return r
}

// comesTrue compares a record with its forecast. Pods that are updated together have no order.
func comesTrue(t *testing.T, f *forecast.Report, got record, together bool) {
	t.Helper()
	want := foretold(f)
	t.Logf("foretold %.1f s, took %.1f s", f.Seconds, got.took.Seconds())
	got.took = 0
	if together {
		assert.ElementsMatch(t, want.Order, got.Order)
		want.Order, got.Order = nil, nil
	}
	assert.Equal(t, want, got)
	assert.Less(t, f.Seconds, time.Hour.Seconds())
}
