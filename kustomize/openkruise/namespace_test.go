package openkruise

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// OpenKruise leaves the kinds alone in all namespaces, so that an operator of one namespace does not replace it.
func TestATakeoverCoversAllNamespaces(t *testing.T) {
	require.NoError(t, WholeCluster("jobs", "", false))
	require.EqualError(t, WholeCluster("jobs", "team", false), "the operator is restricted to namespace team, but a takeover covers all namespaces, "+
		"because OpenKruise stops managing the kinds in all of them. Remove the operator first: flotilla uninstall jobs")
	require.ErrorContains(t, WholeCluster("jobs", "team", true), "Install it for all namespaces first: flotilla install jobs --defaults")
}

func TestAnOperatorInThePlaceOfOpenKruiseIsNotRestricted(t *testing.T) {
	manager := object(t, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {namespace: kruise-system, name: kruise-controller-manager}")
	live := Presence{Deployments: []*unstructured.Unstructured{manager}, Handovers: map[string]Handover{"jobs": {Feature: "jobs", Direction: Over}}}
	require.NoError(t, live.MayRestrict("jobs", ""))
	require.NoError(t, live.MayRestrict("cloneset", "team"))
	require.EqualError(t, live.MayRestrict("jobs", "team"), "jobs was taken over from OpenKruise: with --only-namespace team, its kinds have no "+
		"controller in the other namespaces. Omit the flag, or give the feature back first: flotilla takeover jobs --undo")
	gone := Presence{Handovers: live.Handovers}
	assert.NoError(t, gone.MayRestrict("jobs", "team"), "without OpenKruise the restriction is a choice")
}
