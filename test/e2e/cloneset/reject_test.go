package cloneset

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/test/story"
)

const manifest = `apiVersion: apps.kruise.io/VERSION
kind: CloneSet
metadata: {name: web, namespace: NAMESPACE}
spec:
  replicas: REPLICAS
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: LABEL}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - {name: main, image: "flotilla/demo-app:v1"EXTRA}
  updateStrategy: STRATEGY
`

// Each invalid field is rejected with its path, and running pods are not changed.
func TestBadInputIsRejectedByName(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, version                    string
		replicas, label, extra, strategy string
		want                             []string
	}{
		{name: "negative replicas", replicas: "-1", want: []string{"spec.replicas", "must be greater than or equal to 0"}},
		{name: "selector mismatch", label: "other", want: []string{"spec.template.metadata.labels", "`selector` does not match template `labels`"}},
		{name: "invalid template", extra: ", volumeMounts: [{name: nope, mountPath: /x}]", want: []string{"spec.template.spec.containers[0].volumeMounts[0].name", "Not found"}},
		{name: "unknown field", extra: ", imagee: x", want: []string{"unknown field \"spec.template.spec.containers[0].imagee\""}},
		{name: "partition abc", strategy: "{rollingUpdate: {partition: abc}}", want: []string{"spec.updateStrategy.rollingUpdate.partition", "must be a number or a percentage such as 20%"}},
		{name: "partition 5 in quotes", strategy: `{rollingUpdate: {partition: "5"}}`, want: []string{"spec.updateStrategy.rollingUpdate.partition", "must be a number or a percentage such as 20%"}},
		{name: "partition -1", strategy: "{rollingUpdate: {partition: -1}}", want: []string{"spec.updateStrategy.rollingUpdate.partition", "must be greater than or equal to 0"}},
		{name: "partition abc in v1alpha1", version: "v1alpha1", strategy: "{partition: abc}", want: []string{"spec.updateStrategy.partition", "string is not a percentage"}},
	}
	namespace := world.Namespace(t)
	set := newSet(namespace, 1)
	givenSet(t, set)
	before := podsOf(t, set)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			or := func(value, otherwise string) string {
				if value == "" {
					return otherwise
				}
				return value
			}
			text := strings.NewReplacer("VERSION", or(tt.version, "v1beta1"), "NAMESPACE", namespace, "REPLICAS", or(tt.replicas, "1"),
				"LABEL", or(tt.label, "web"), "EXTRA", tt.extra, "STRATEGY", or(tt.strategy, "{}")).Replace(manifest)
			out, err := world.Kubectl(t, text, "apply", "-f", "-")
			require.Error(t, err, out)
			for _, want := range tt.want {
				assert.Contains(t, out, want)
			}
		})
	}
	after := podsOf(t, set)
	assert.Equal(t, story.Identities(before), story.Identities(after))
	assert.Equal(t, story.ContainerIDs(before), story.ContainerIDs(after))
	assert.Equal(t, before[0].Spec, after[0].Spec)
	assert.Equal(t, before[0].Labels, after[0].Labels)
	assert.Equal(t, before[0].Annotations, after[0].Annotations)
}

// Both versions are served: an object that is written in v1alpha1 can be read in v1beta1.
func TestOldManifestsWork(t *testing.T) {
	t.Parallel()
	namespace := world.Namespace(t)
	text := strings.NewReplacer("VERSION", "v1alpha1", "NAMESPACE", namespace, "REPLICAS", "2", "LABEL", "web", "EXTRA", "",
		"STRATEGY", "{type: InPlaceIfPossible, maxUnavailable: 1}").Replace(manifest)
	out, err := world.Kubectl(t, text, "apply", "-f", "-")
	require.NoError(t, err, out)
	set := newSet(namespace, 2)
	settles(t, set)
	assert.Equal(t, "InPlaceIfPossible", string(set.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy))
	assert.True(t, set.Spec.ScaleStrategy.EnablePVCReuse, "a v1alpha1 manifest reuses claims")
	before := story.Identities(podsOf(t, set))
	out, err = world.Kubectl(t, strings.ReplaceAll(text, "demo-app:v1", "demo-app:v2"), "apply", "-f", "-")
	require.NoError(t, err, out)
	settles(t, set)
	assert.Equal(t, before, story.Identities(podsOf(t, set)))
	out, err = world.Kubectl(t, "", "-n", namespace, "get", "clonesets.v1alpha1.apps.kruise.io", "web", "-o", "jsonpath={.spec.updateStrategy.type}")
	require.NoError(t, err, out)
	assert.Equal(t, "InPlaceIfPossible", out)
}
