package simulate_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/forecast"
	"github.com/flotilla-project/flotilla/kustomize/simulate"
	"github.com/flotilla-project/flotilla/kustomize/test/scenes"
)

// call runs flotilla simulate without a cluster.
func call(t *testing.T, args ...string) (output string, code cli.Code) {
	t.Helper()
	var out bytes.Buffer
	command := simulate.NewCommand(genericclioptions.NewConfigFlags(true), genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out})
	command.SetOut(&out)
	command.SetErr(&out)
	command.SetArgs(args)
	code = cli.Run(t.Context(), command)
	return out.String(), code
}

// stored writes a scene as kubectl get -o yaml prints it.
func stored(t *testing.T, s *forecast.Scene) (file string) {
	t.Helper()
	items := []any{s.Set.Object}
	add := func(apiVersion, kind string, o any) {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		require.NoError(t, err)
		fields["apiVersion"], fields["kind"] = apiVersion, kind
		items = append(items, fields)
	}
	for _, o := range s.Pods {
		add("v1", "Pod", o)
	}
	for _, o := range s.Nodes {
		add("v1", "Node", o)
	}
	for _, o := range s.Revisions {
		add("apps/v1", "ControllerRevision", o)
	}
	return written(t, map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
}

func written(t *testing.T, o any) (file string) {
	t.Helper()
	text, err := yaml.Marshal(o)
	require.NoError(t, err)
	file = filepath.Join(t.TempDir(), "objects.yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	return file
}

// The guide shows the output of an edit, which comes out just so.
func TestTheOutputOfTheGuide(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "simulate.md"))
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(page), "\n```\n")
	want, _, _ := strings.Cut(rest, "\n```\n")

	output, code := call(t, "cloneset/web", "--set-image", "main=nginx:1.29", "--pods", stored(t, scenes.Settled(t, scenes.Web)))

	assert.Equal(t, cli.Done, code)
	assert.Equal(t, want, trimmed(output))
}

// trimmed is a text without spaces at the ends of its lines.
func trimmed(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func TestAManifestIsAppliedAsByKubectl(t *testing.T) {
	scene := scenes.Settled(t, scenes.Web)
	manifest := scenes.Object(t, strings.ReplaceAll(scenes.Web, "app:v1", "app:v2"))
	applied, err := scenes.Object(t, scenes.Web).MarshalJSON()
	require.NoError(t, err)
	scene.Set.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": string(applied)})
	unstructured.RemoveNestedField(manifest.Object, "spec", "updateStrategy", "rollingUpdate", "maxUnavailable")

	output, code := call(t, "-f", written(t, manifest.Object), "--pods", stored(t, scene), "-o", "json")

	require.Equal(t, cli.Done, code, output)
	var f forecast.Report
	require.NoError(t, json.Unmarshal([]byte(output), &f))
	assert.Equal(t, 10, f.InPlace)
	assert.Equal(t, 8, f.LowestAvailable, "the default is 20%")
}

func TestWhatCannotEndExitsWithThree(t *testing.T) {
	file := stored(t, scenes.Settled(t, scenes.Web))
	output, code := call(t, "clone/web", "--set-image", "main=app:v2", "--crash", "app:v2", "--pods", file)
	assert.Equal(t, cli.NotSo, code)
	assert.Regexp(t, `(?m)^Failed after .*CrashLoopBackOff`, output)
	assert.Contains(t, output, "  pods: 2 updated in place\n  available: 10 before, never fewer than 8; at most 10 pods at once\n")
}

func TestCommandLinesThatMakeNoSense(t *testing.T) {
	file := stored(t, scenes.Settled(t, scenes.Web))
	several := written(t, map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{scenes.Object(t, scenes.Web).Object, scenes.Object(t, scenes.Web).Object}})
	for text, args := range map[string][]string{
		"name a workload, such as cloneset/web, or a manifest with -f":                  {"--pods", file},
		"--pods has no cloneset/other: add the output of kubectl get clonesets":         {"clone/other", "--pods", file},
		"--set-image v2: use CONTAINER=IMAGE":                                           {"clone/web", "--pods", file, "--set-image", "v2"},
		`web has no container "side"; use main`:                                         {"clone/web", "--pods", file, "--set-image", "side=app:v2"},
		"--partition many is neither a number of pods nor a percentage":                 {"clone/web", "--pods", file, "--partition", "many"},
		"--crash app:v3: after the edit no container has this image; use one of app:v1": {"clone/web", "--pods", file, "--crash", "app:v3"},
		"--lose-node node-9: there is no such node":                                     {"clone/web", "--pods", file, "--lose-node", "node-9"},
		"--evict web-0: the workload has no such pod":                                   {"clone/web", "--pods", file, "--evict", "web-0"},
		"has several workloads, such as cloneset/web: simulate plays one":               {"-f", several, "--pods", file},
		"-f has cloneset/web, and the command names cloneset/api":                       {"clone/api", "-f", written(t, scenes.Object(t, scenes.Web).Object), "--pods", file},
	} {
		output, code := call(t, args...)
		assert.Equal(t, cli.Misused, code, output)
		assert.Contains(t, output, text)
	}
}
