package daemonset

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/test/story"
)

const manifest = `apiVersion: apps.kruise.io/VERSION
kind: DaemonSet
metadata: {name: web, namespace: NAMESPACE}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: LABEL}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - {name: main, image: "flotilla/demo-app:v1"EXTRA}
  updateStrategy: {rollingUpdate: ROLLING}
`

// Each invalid field is rejected with its path, and running pods are not changed.
func TestBadInputIsRejectedByName(t *testing.T) {
	t.Parallel()
	const rolling = "spec.updateStrategy.rollingUpdate."
	tests := []struct {
		name, version         string
		label, extra, rolling string
		want                  []string
	}{
		{name: "selector mismatch", label: "other", want: []string{"spec.template.metadata.labels"}},
		{name: "invalid template", extra: ", volumeMounts: [{name: nope, mountPath: /x}]", want: []string{"spec.template.spec.containers[0].volumeMounts[0].name", "Not found"}},
		{name: "unknown field", extra: ", imagee: x", want: []string{"unknown field \"spec.template.spec.containers[0].imagee\""}},
		{name: "partition abc", rolling: "{partition: abc}", want: []string{rolling + "partition"}},
		{name: "both limits", rolling: "{maxSurge: 1, maxUnavailable: 1}", want: []string{rolling + "maxSurge", "may not be set when maxUnavailable is non-zero"}},
		{name: "no limit", rolling: "{maxSurge: 0, maxUnavailable: 0}", want: []string{rolling + "maxUnavailable", "cannot be 0 when maxSurge is 0"}},
		{name: "partition abc in v1alpha1", version: "v1alpha1", rolling: "{partition: abc}", want: []string{rolling + "partition"}},
	}
	set := newSet(world.Namespace(t))
	givenSet(t, set)
	before := podsOf(t, set)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			version, label, rolling := "v1beta1", "web", "{}"
			for value, target := range map[*string]*string{&tt.version: &version, &tt.label: &label, &tt.rolling: &rolling} {
				if *value != "" {
					*target = *value
				}
			}
			text := strings.NewReplacer("VERSION", version, "NAMESPACE", set.Namespace, "LABEL", label, "EXTRA", tt.extra,
				"ROLLING", rolling).Replace(manifest)
			out, err := world.Kubectl(t, text, "apply", "--validate=strict", "-f", "-")
			require.Error(t, err, out)
			for _, want := range tt.want {
				assert.Contains(t, out, want)
			}
		})
	}
	assert.Equal(t, story.Identities(before), story.Identities(podsOf(t, set)))
}
