package statefulset

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-project/flotilla/test/story"
)

const manifest = `apiVersion: apps.kruise.io/VERSION
kind: StatefulSet
metadata: {name: NAME, namespace: NAMESPACE}
spec:
  replicas: 1
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec:
      terminationGracePeriodSeconds: 1
      readinessGates: [{conditionType: InPlaceUpdateReady}]
      containers:
      - {name: main, image: "flotilla/demo-app:v1"}
`

// Each invalid field is rejected with its path and the reason.
func TestBadInputIsRejectedByName(t *testing.T) {
	t.Parallel()
	ordered := `{"spec":{"podManagementPolicy":"OrderedReady"`
	tests := []struct {
		name, patch string
		want        []string
	}{
		{"negative replicas", `{"spec":{"replicas":-1}}`, []string{"spec.replicas", "must be greater than or equal to 0"}},
		{"selector mismatch", `{"spec":{"template":{"metadata":{"labels":{"app":"other"}}}}}`,
			[]string{"spec.template.metadata.labels", "`selector` does not match template `labels`"}},
		{"empty selector", `{"spec":{"selector":{"matchLabels":null}}}`, []string{"spec.selector", "empty selector is invalid for statefulset"}},
		{"policy", `{"spec":{"podManagementPolicy":"Random"}}`, []string{"spec.podManagementPolicy", "must be 'OrderedReady' or 'Parallel'"}},
		{"strategy type", `{"spec":{"updateStrategy":{"type":"Random"}}}`, []string{"spec.updateStrategy", "must be 'RollingUpdate' or 'OnDelete'"}},
		{"rolling update on delete", `{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":{"partition":1}}}}`,
			[]string{"spec.updateStrategy.rollingUpdate", "only allowed for updateStrategy 'RollingUpdate'"}},
		{"partition", `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":-1}}}}`,
			[]string{"spec.updateStrategy.rollingUpdate.partition", "must be greater than or equal to 0"}},
		{"min ready seconds", `{"spec":{"updateStrategy":{"rollingUpdate":{"minReadySeconds":301}}}}`,
			[]string{"spec.updateStrategy.rollingUpdate.minReadySeconds", "must be no more than 300 seconds"}},
		{"max unavailable 0", `{"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":0}}}}`,
			[]string{"spec.updateStrategy.rollingUpdate.maxUnavailable", "should not be less than 1"}},
		{"max unavailable 0%", `{"spec":{"scaleStrategy":{"maxUnavailable":"0%"}}}`,
			[]string{"spec.scaleStrategy.maxUnavailable", "should not be less than 1"}},
		{"max unavailable 5 in quotes", `{"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":"5"}}}}`,
			[]string{"spec.updateStrategy.rollingUpdate.maxUnavailable", "percent"}},
		{"scale strategy in order", ordered + `,"scaleStrategy":{"maxUnavailable":2}}}`,
			[]string{"spec.scaleStrategy.maxUnavailable", "can only work with Parallel PodManagementPolicyType"}},
		{"unordered update in order", ordered + `,"updateStrategy":{"rollingUpdate":{"unorderedUpdate":{}}}}}`,
			[]string{"spec.updateStrategy.rollingUpdate.unorderedUpdate", "unorderedUpdate can only work with Parallel PodManagementPolicyType"}},
		{"both priorities", `{"spec":{"updateStrategy":{"rollingUpdate":{"unorderedUpdate":{"priorityStrategy":{` +
			`"orderPriority":[{"orderedKey":"a"}],"weightPriority":[{"weight":1,"matchSelector":{"matchLabels":{"a":"b"}}}]}}}}}}`,
			[]string{"spec.updateStrategy.rollingUpdate.unorderedUpdate.priorityStrategy", "only one of weightPriority and orderPriority can be used"}},
		{"range that ends before it begins", `{"spec":{"reserveOrdinals":["3-1"]}}`, []string{"spec.reserveOrdinals[0]", "3-1"}},
		{"malformed range", `{"spec":{"reserveOrdinals":[0,"1-2-3"]}}`, []string{"spec.reserveOrdinals[1]", "1-2-3"}},
		{"number in quotes", `{"spec":{"reserveOrdinals":["5"]}}`, []string{"spec.reserveOrdinals[0]", "5"}},
		{"negative ordinal", `{"spec":{"reserveOrdinals":[-1]}}`, []string{"spec.reserveOrdinals[0]", "-1"}},
		{"negative start", `{"spec":{"ordinals":{"start":-1}}}`, []string{"spec.ordinals.start", "must be greater than or equal to 0"}},
		{"retention", `{"spec":{"persistentVolumeClaimRetentionPolicy":{"whenScaled":"Maybe"}}}`,
			[]string{"spec.persistentVolumeClaimRetentionPolicy.whenScaled", "Retain", "Delete"}},
		{"restart policy", `{"spec":{"template":{"spec":{"restartPolicy":"Never"}}}}`, []string{"spec.template.spec.restartPolicy", "Always"}},
		{"deadline", `{"spec":{"template":{"spec":{"activeDeadlineSeconds":5}}}}`, []string{"spec.template.spec.activeDeadlineSeconds", "not"}},
		{"in place without the gate", `{"spec":{"updateStrategy":{"rollingUpdate":{"podUpdatePolicy":"InPlaceOnly"}},"template":{"spec":{"readinessGates":null}}}}`,
			[]string{"spec.template.spec.readinessGates", "InPlaceUpdateReady"}},
		{"unknown field of the template", `{"spec":{"template":{"spec":{"hostNetwrok":true}}}}`, []string{`unknown field "spec.template.spec.hostNetwrok"`}},
		{"invalid template", `{"spec":{"template":{"spec":{"volumes":[{"name":"UPPER","emptyDir":{}}]}}}}`, []string{"spec.template.spec.volumes[0].name"}},
		{"service name", `{"spec":{"serviceName":"not a name"}}`, []string{"spec.serviceName"}},
	}
	namespace := world.Namespace(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var object, patch map[string]any
			require.NoError(t, yaml.Unmarshal([]byte(text("v1beta1", "bad", namespace)), &object))
			require.NoError(t, yaml.Unmarshal([]byte(tt.patch), &patch))
			bad, err := yaml.Marshal(merged(object, patch))
			require.NoError(t, err)
			out, err := world.Kubectl(t, string(bad), "create", "--validate=strict", "-f", "-")
			require.Error(t, err, out)
			for _, want := range tt.want {
				assert.Contains(t, out, want)
			}
		})
	}
	assert.Empty(t, world.Pods(t, namespace))
}

// merged returns the object after a merge patch.
func merged(object, patch map[string]any) map[string]any {
	for key, value := range patch {
		below, isMap := object[key].(map[string]any)
		change, changes := value.(map[string]any)
		switch {
		case value == nil:
			delete(object, key)
		case isMap && changes:
			object[key] = merged(below, change)
		default:
			object[key] = value
		}
	}
	return object
}

func text(version, name, namespace string) string {
	return strings.NewReplacer("VERSION", version, "NAMESPACE", namespace, "NAME", name).Replace(manifest)
}

// A change of an immutable field is rejected with the field's path, and running pods are not changed.
func TestWhatNeverChangesIsRefusedByName(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 1)
	givenSet(t, set)
	before := podsOf(t, set)
	for field, patch := range map[string]string{
		"podManagementPolicy": `{"spec":{"podManagementPolicy":"OrderedReady"}}`,
		"serviceName":         `{"spec":{"serviceName":"other"}}`,
		"selector":            `{"spec":{"selector":{"matchLabels":{"more":"labels"}},"template":{"metadata":{"labels":{"more":"labels"}}}}}`,
	} {
		out, err := world.Kubectl(t, "", "-n", set.Namespace, "patch", "asts/web", "--type=merge", "-p", patch)
		require.Error(t, err, out)
		assert.Contains(t, out, "but '"+field+"'")
	}
	after := podsOf(t, set)
	assert.Equal(t, story.Identities(before), story.Identities(after))
	assert.Equal(t, story.ContainerIDs(before), story.ContainerIDs(after))
}

// Both versions are served. A write in v1alpha1 keeps the fields that v1alpha1 lacks.
func TestOldManifestsWorkAndEraseNothing(t *testing.T) {
	t.Parallel()
	namespace := world.Namespace(t)
	out, err := world.Kubectl(t, text("v1alpha1", "web", namespace), "apply", "-f", "-")
	require.NoError(t, err, out)
	set := newSet(namespace, 1)
	settles(t, set)
	rolls(t, set, changes(reserve(0, "2-3"), replicas(2)))
	require.Equal(t, []string{"web-1", "web-4"}, names(story.Active(podsOf(t, set))))

	old := "statefulsets.v1alpha1.apps.kruise.io"
	out, err = world.Kubectl(t, "", "-n", namespace, "get", old, "web", "-o", "yaml")
	require.NoError(t, err, out)
	out, err = world.Kubectl(t, strings.Replace(out, "replicas: 2", "replicas: 3", 1), "replace", "-f", "-")
	require.NoError(t, err, out)
	settles(t, set)
	assert.Len(t, set.Spec.ReserveOrdinals, 2)
	assert.Equal(t, []string{"web-1", "web-4", "web-5"}, names(story.Active(podsOf(t, set))))
}
