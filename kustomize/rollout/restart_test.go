package rollout_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/workload"
)

func TestRestartInPlace(t *testing.T) {
	const inPlace = `{"rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible"}}`
	kind := workload.Kinds()[0]
	for _, c := range []struct {
		strategy string
		args     []string
		code     cli.Code
		says     string
		value    string
	}{
		{inPlace, nil, cli.Done, "CloneSet/web restarts in place\n", `^\S+Z$`},
		{inPlace, []string{"-c", "main"}, cli.Done, "CloneSet/web restarts in place\n", `^\S+Z main$`},
		{inPlace, []string{"-c", "other"}, cli.Misused, `has no container "other"; use main`, "^$"},
		{rolling, []string{"-c", "main"}, cli.Misused, "recreates its pods", "^$"},
		{`{"rollingUpdate": {"paused": true}}`, nil, cli.Failed, "is paused; resume it first", "^$"},
	} {
		w := newWorld(t)
		w.create(kind, c.strategy)
		out, errOut, code := w.call(append([]string{"rollout", "restart", "clone/web"}, c.args...)...)
		assert.Equal(t, c.code, code, errOut)
		assert.Contains(t, out+errOut, c.says)
		value, _, err := unstructured.NestedString(w.get(kind).Template(), "metadata", "annotations", "apps.kruise.io/restart-in-place")
		require.NoError(t, err)
		assert.Regexp(t, c.value, value)
		assert.NotContains(t, fmt.Sprint(w.get(kind).Template()), "restartedAt")
	}
}
