package operations

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-project/flotilla/kustomize/release/images"

	"github.com/flotilla-project/flotilla/test/story"
)

// silent reports whether the metric has no data where no node agent runs and all pods get a subset.
func silent(metric string) bool {
	return strings.HasPrefix(metric, "kruise_agent_") || metric == "flotilla_spread_unplaced_pods_total"
}

// The rules of the docs load, they and the panels of the dashboard have data, and alerts fire when a rollout cannot go on
// and when an operator dies. `for` is shortened, and time runs fast.
func TestAlertsFireAndPanelsHaveData(t *testing.T) {
	need(t)
	f := install(t, "", all(t)...)
	file, draw := drawn(t)
	p := startPrometheus(t, f, draw...)
	set := given(t, world.Namespace(t), "cloneset")
	isReady(t, set)
	tell(t, all(t)...)

	broken := given(t, world.Namespace(t), "cloneset")
	isReady(t, broken)
	story.Edit(t, world, broken, func(set *unstructured.Unstructured) { require.NoError(t, image(badImage)(set)) })
	p.fires(t, "FlotillaRolloutBroken", "cloneset")
	require.NoError(t, f["cloneset"].Uninstall(t.Context(), func(o unstructured.Unstructured) bool { return o.GetKind() == "ClusterRoleBinding" }))
	out, err := world.Kubectl(t, "", "-n", set.GetNamespace(), "scale", "clonesets.apps.kruise.io/web", "--replicas=5")
	require.NoError(t, err, out)
	p.fires(t, "FlotillaReconcileErrors", "cloneset")
	f.kill(t, "statefulset")
	p.fires(t, "FlotillaOperatorGone", "statefulset")
	f.kill(t, "cloneset")
	require.NoError(t, os.Truncate(f["cloneset"].Log, 0)) // it was made to fail

	for _, e := range p.expressions(t) {
		for selector, found := range e.Selectors {
			if metric, _, _ := strings.Cut(selector, "{"); !silent(metric) {
				assert.NotZero(t, found, "%s: %s has no data", e.From, selector)
			}
		}
	}
	hasPanels(t, file)
}

// prometheus is a running command of test/prometheus.
type prometheus struct {
	lines *bufio.Scanner
	input io.Closer
}

// line is a line of its output: an alert that begins to fire, or an expression with its data.
type line struct {
	Alert     string
	Labels    map[string]string
	From      string
	Selectors map[string]int
}

// startPrometheus lets Prometheus' engine watch the managers until the end of the test; further are more arguments.
func startPrometheus(t *testing.T, f fleet, further ...string) prometheus {
	t.Helper()
	root, err := images.FindRoot()
	require.NoError(t, err)
	binary := filepath.Join(root, "bin", "prometheus")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".")
	build.Dir, build.Env = filepath.Join(root, "test", "prometheus"), append(os.Environ(), "GOWORK=off")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))

	docs := filepath.Join(root, "docs", "operate")
	arguments := append([]string{"-rules", filepath.Join(docs, "alerts.yaml"), "-dashboard", filepath.Join(docs, "dashboard.json")}, further...)
	for feature, m := range f {
		arguments = append(arguments, feature+"="+m.Metrics)
	}
	ctx, stop := context.WithTimeout(t.Context(), 2*story.Patience) // ends the wait for an alert that does not fire
	t.Cleanup(stop)
	command := exec.CommandContext(ctx, binary, arguments...)
	command.Stderr = t.Output()
	input, err := command.StdinPipe()
	require.NoError(t, err)
	output, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = input.Close()
		_ = command.Wait()
	})
	return prometheus{bufio.NewScanner(output), input}
}

// fires waits until the alert fires for the operator. Other alerts may fire before.
func (p prometheus) fires(t *testing.T, alert, operator string) {
	t.Helper()
	for {
		l, more := p.next(t)
		require.True(t, more, "%s does not fire", alert)
		if l.Alert == alert && l.Labels["operator"] == operator {
			return
		}
	}
}

// expressions ends Prometheus and returns what data the expressions have.
func (p prometheus) expressions(t *testing.T) (all []line) {
	t.Helper()
	require.NoError(t, p.input.Close())
	for {
		l, more := p.next(t)
		if !more {
			require.NotEmpty(t, all)
			return all
		}
		if l.From != "" {
			all = append(all, l)
		}
	}
}

func (p prometheus) next(t *testing.T) (l line, more bool) {
	t.Helper()
	if !p.lines.Scan() {
		require.NoError(t, p.lines.Err())
		return l, false
	}
	require.NoError(t, json.Unmarshal(p.lines.Bytes(), &l))
	t.Log(p.lines.Text())
	return l, true
}
