package daemon

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Invalid requests are rejected with the path of the invalid field.
func TestRequestsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	o := givenPod(t, newContainer("main", 8080))
	for name, c := range map[string]struct{ spec, words string }{
		"no such pod":          {"{podName: nobody, containers: [{name: main}]}", `spec.podName: Invalid value: "nobody"`},
		"no container":         {"{podName: web, containers: []}", "spec.containers: Required value"},
		"no such container":    {"{podName: web, containers: [{name: other}]}", "spec.containers[0].name"},
		"a container twice":    {"{podName: web, containers: [{name: main}, {name: main}]}", `spec.containers[1].name: Duplicate value: "main"`},
		"a deadline too short": {"{podName: web, containers: [{name: main}], activeDeadlineSeconds: 2}", "spec.activeDeadlineSeconds"},
		"a negative grace": {
			"{podName: web, containers: [{name: main}], strategy: {unreadyGracePeriodSeconds: -1}}", "spec.strategy.unreadyGracePeriodSeconds",
		},
		"an unknown policy": {
			"{podName: web, containers: [{name: main}], strategy: {failurePolicy: Retry}}", `Unsupported value: "Retry"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := fmt.Sprintf("{apiVersion: apps.kruise.io/v1alpha1, kind: ContainerRecreateRequest, metadata: {name: bad}, spec: %s}", c.spec)
			out, err := world.Kubectl(t, manifest, "-n", o.Namespace, "apply", "-f", "-")
			require.Error(t, err, out)
			assert.Contains(t, out, c.words)
		})
	}
}
