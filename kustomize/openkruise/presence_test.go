package openkruise

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	parsed := &unstructured.Unstructured{}
	encoded, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	require.NoError(t, parsed.UnmarshalJSON(encoded))
	return parsed
}

func crd(t *testing.T, namespace, service string) *unstructured.Unstructured {
	t.Helper()
	return object(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: clonesets.apps.kruise.io}
spec: {conversion: {webhook: {clientConfig: {service: {namespace: "`+namespace+`", name: "`+service+`", port: 443}}}}}`)
}

func webhooksFor(t *testing.T, resource string) *unstructured.Unstructured {
	t.Helper()
	configuration := Configurations()[0].DeepCopy()
	configuration.Object["webhooks"] = []any{map[string]any{"rules": []any{
		map[string]any{"apiGroups": []any{"apps.kruise.io"}, "resources": []any{resource}},
	}}}
	return configuration
}

// What stands in the way of an install, with the command that is right.
func TestConflictsOfAnInstall(t *testing.T) {
	manager := object(t, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {namespace: kruise-system, name: kruise-controller-manager}")
	mine := crd(t, "flotilla-system", "cloneset-webhook")
	cases := []struct {
		name     string
		presence Presence
		crds     []*unstructured.Unstructured
		want     string
	}{
		{"an empty cluster", Presence{}, nil, ""},
		{"an own CRD", Presence{}, []*unstructured.Unstructured{mine}, ""},
		{
			"webhooks for the kind", Presence{Configurations: []*unstructured.Unstructured{webhooksFor(t, "clonesets")}}, []*unstructured.Unstructured{mine},
			"OpenKruise manages the kinds of cloneset: MutatingWebhookConfiguration kruise-mutating-webhook-configuration has rules for " +
				"clonesets.apps.kruise.io; flotilla takeover cloneset",
		},
		{"webhooks for other kinds", Presence{Configurations: []*unstructured.Unstructured{webhooksFor(t, "sidecarsets")}}, []*unstructured.Unstructured{mine}, ""},
		{
			"a manager", Presence{Deployments: []*unstructured.Unstructured{manager}}, []*unstructured.Unstructured{mine},
			"OpenKruise manages the kinds of cloneset: Deployment kruise-system/kruise-controller-manager runs, and " +
				"CustomResourceDefinition clonesets.apps.kruise.io exists; flotilla takeover cloneset",
		},
		{"a manager without the kind", Presence{Deployments: []*unstructured.Unstructured{manager}}, nil, ""},
		{
			"a kind that was taken over",
			Presence{Deployments: []*unstructured.Unstructured{manager}, Handovers: map[string]Handover{"cloneset": {Feature: "cloneset", From: Default()}}},
			[]*unstructured.Unstructured{mine}, "",
		},
		{
			"a takeover that was cut off", Presence{Handovers: map[string]Handover{"cloneset": {Feature: "cloneset", From: Default(), Step: "install"}}}, nil,
			"cloneset: its takeover from OpenKruise was interrupted; last step: install. To continue: flotilla takeover cloneset. " +
				"To go back: flotilla takeover cloneset --undo",
		},
		{
			"another namespace", Presence{}, []*unstructured.Unstructured{crd(t, "team", "cloneset-webhook")},
			"cloneset is installed in namespace team: Service cloneset-webhook there converts clonesets.apps.kruise.io. A cluster can have " +
				"a feature only once: upgrade it with the tool that installed it, or remove it there first",
		},
		{
			"another operator", Presence{}, []*unstructured.Unstructured{crd(t, "other", "webhook")},
			"another operator manages clonesets.apps.kruise.io: Service other/webhook converts it. Remove that operator first, or if it " +
				"is OpenKruise: flotilla takeover cloneset",
		},
		{"an operator that is gone", Presence{}, []*unstructured.Unstructured{crd(t, "gone", "webhook")}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := c.presence.Conflict("cloneset", c.crds, func(namespace, _ string) bool { return namespace != "gone" })
			assert.Equal(t, c.want, got)
		})
	}
}

func TestHandoversAreReadAsTheyWereWritten(t *testing.T) {
	for _, want := range []Handover{
		{Feature: "jobs", Step: "install", Direction: Over, From: Manager{Namespace: "a", Account: "b"}},
		{Feature: "jobs", Direction: Back, From: Default()},
	} {
		stored := RecordOf("jobs")
		want.Write(stored)
		assert.Equal(t, want, Read(stored))
	}
	assert.Equal(t, Handover{Feature: "jobs", Direction: Over, From: Default()}, Read(RecordOf("jobs")), "of an earlier version")
	back := Handover{Feature: "jobs", Step: "restore the CRDs", Direction: Back, From: Manager{Namespace: "a", Account: "kruise-manager"}}
	assert.Equal(t, "the return to OpenKruise was interrupted; last step: restore the CRDs", back.Trouble())
	assert.Equal(t, "To continue: flotilla takeover jobs --undo. To take it over again: flotilla takeover jobs --from-namespace a", back.Help())
}

// The end of a takeover can be gone on with, and gone back from only before it removes something.
func TestTheEndOfAHandover(t *testing.T) {
	final := Handover{Feature: "jobs", Step: "remove OpenKruise's webhooks", Direction: Final, From: Default()}
	stored := RecordOf("jobs")
	final.Write(stored)
	assert.Equal(t, final, Read(stored))
	assert.Equal(t, "the end of its takeover from OpenKruise was interrupted; last step: remove OpenKruise's webhooks", final.Trouble())
	assert.Equal(t, "To continue: flotilla takeover --finish jobs", final.Help())
	assert.Empty(t, final.State())
	final.Step = ""
	assert.Equal(t, "takeover from OpenKruise is final; to remove the rest of OpenKruise: flotilla takeover --finish", final.State())
	assert.Equal(t, "taken over from OpenKruise; to go back: flotilla takeover jobs --undo; to finish: flotilla takeover --finish jobs",
		Handover{Feature: "jobs", Direction: Over, From: Default()}.State())
}

// Of OpenKruise's kinds those are its own that Flotilla does not look after, and that people use.
func TestWhatOpenKruiseLooksAfter(t *testing.T) {
	of := func(group, plural, partOf string) *unstructured.Unstructured {
		return object(t, "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: x, labels: {app.kubernetes.io/part-of: \""+partOf+
			"\"}}, spec: {group: "+group+", names: {plural: "+plural+"}}}")
	}
	assert.True(t, LooksAfter(of("apps.kruise.io", "sidecarsets", "")))
	assert.True(t, LooksAfter(of("apps.kruise.io", "clonesets", "kruise")))
	assert.True(t, LooksAfter(of("policy.kruise.io", "podunavailablebudgets", "")))
	assert.False(t, LooksAfter(of("apps.kruise.io", "clonesets", "flotilla")))
	assert.False(t, LooksAfter(of("apps.kruise.io", "nodeimages", "")), "the node agent is replaced at the end")
	assert.False(t, LooksAfter(of("apps.kruise.io", "nodepodprobes", "")), "each node has one")
	assert.False(t, LooksAfter(of("rollouts.kruise.io", "rollouts", "")), "of another project")
}
