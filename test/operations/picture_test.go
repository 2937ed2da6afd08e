package operations

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/flotilla-project/flotilla/test/story"
)

var picture = flag.String("draw", "", "file for a picture of the dashboard")

// drawn is the argument by which Prometheus draws into a file of its own.
func drawn(t *testing.T) (file string, arguments []string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "dashboard.svg")
	return file, []string{"-draw", file}
}

// hasPanels checks what is seen of the picture: rows with data and their panels, and no row without.
func hasPanels(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, title := range []string{"Operators", "Leaders", "Workloads", "Unavailable pods", "Failing pods", "Reconciles", "Webhooks"} {
		assert.Contains(t, string(text), ">"+title+"</text>")
	}
	assert.Contains(t, string(text), "<path d=\"M", "no curve")
	assert.NotContains(t, string(text), ">Node agent</text>")
}

// With flag draw, a rollout that breaks and is mended is drawn as an operator of clusters sees it, in real time.
func TestARolloutIsDrawn(t *testing.T) {
	need(t)
	if *picture == "" {
		t.Skip("-draw names no file")
	}
	file, err := filepath.Abs(*picture)
	require.NoError(t, err)
	f := install(t, "", all(t)...)
	p := startPrometheus(t, f, "-step", "1s", "-pause", "1s", "-draw", file)
	set, other := given(t, world.Namespace(t), "cloneset"), given(t, world.Namespace(t), "statefulset")
	replicas := func(set *unstructured.Unstructured, n int64) {
		story.Edit(t, world, set, func(set *unstructured.Unstructured) {
			require.NoError(t, unstructured.SetNestedField(set.Object, n, "spec", "replicas"))
		})
	}
	passes := func(d time.Duration) { // what a picture shows is time
		_ = wait.PollUntilContextTimeout(t.Context(), d, d, false, func(context.Context) (bool, error) { return true, nil })
	}
	passes(5 * time.Second)
	replicas(set, 40)
	replicas(other, 20)
	isReady(t, set)
	isReady(t, other)
	tell(t, helpers(t)...)
	passes(10 * time.Second)
	setImage(t, set, "app:v2")
	passes(10 * time.Second)
	story.Edit(t, world, set, func(set *unstructured.Unstructured) { require.NoError(t, image(badImage)(set)) })
	setImage(t, other, "app:v2")
	passes(20 * time.Second)
	setImage(t, set, "app:v3")
	passes(5 * time.Second)
	replicas(set, 60)
	isReady(t, set)
	passes(15 * time.Second)
	p.expressions(t)
	hasPanels(t, file)
}
