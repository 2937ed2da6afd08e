package conversion

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/spread/api/v1alpha1"
	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

const old = `{"apiVersion":"apps.kruise.io/v1alpha1","kind":"WorkloadSpread","metadata":{"name":"web"},
"spec":{"targetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"},"scheduleStrategy":{},
 "subsets":[{"name":"a","maxReplicas":"30%","patch":{"spec":{"containers":[{"name":"main","x":1}]}},
  "requiredNodeSelectorTerm":{"matchExpressions":[{"key":"zone","operator":"In","values":["a"]}]},
  "preferredNodeSelectorTerms":[{"weight":1,"preference":{}}]},{"name":"b","tolerations":[]}]},
"status":{"observedGeneration":3,
 "subsetStatuses":[{"name":"a","replicas":1,"missingReplicas":-1,"conditions":[{"type":"Schedulable","status":"False"}]}],
 "versionedSubsetStatuses":{"5d8f":[{"name":"a","replicas":1,"missingReplicas":0,"creatingPods":{"x":"2030-01-01T00:00:00Z"},
  "conditions":[{"type":"Schedulable","status":"True","reason":"Sufficient","message":"m","lastTransitionTime":"2030-01-01T00:00:00Z"}]}]}}}`

func TestV1alpha1IsConverted(t *testing.T) {
	raw, err := Convert([]byte(old), "apps.kruise.io/v1beta1")
	require.NoError(t, err)
	var hub v1beta1.WorkloadSpread
	require.NoError(t, json.Unmarshal(raw, &hub))
	subset := hub.Spec.Subsets[0]
	assert.Equal(t, "zone", subset.RequiredNodeSelector.MatchExpressions[0].Key)
	assert.EqualValues(t, 1, subset.PreferredNodeSelector[0].Weight)
	assert.JSONEq(t, `{"spec":{"containers":[{"name":"main","x":1}]}}`, string(subset.Patch.Raw))
	assert.Equal(t, v1beta1.ReasonUnknown, hub.Status.SubsetStatuses[0].Conditions[0].Reason)
	assert.Equal(t, v1beta1.ReasonSufficient, hub.Status.VersionedSubsetStatuses["5d8f"][0].Conditions[0].Reason)

	again, err := Convert(raw, "apps.kruise.io/v1alpha1")
	require.NoError(t, err)
	var was, is map[string]any
	require.NoError(t, json.Unmarshal([]byte(old), &was))
	require.NoError(t, json.Unmarshal(again, &is))
	condition := was["status"].(map[string]any)["subsetStatuses"].([]any)[0].(map[string]any)["conditions"].([]any)[0].(map[string]any)
	condition["reason"], condition["message"], condition["lastTransitionTime"] = "Unknown", "", beginning
	assert.Equal(t, was, is, "all else comes back")
}

// A WorkloadSpread may be stored as v1alpha1: what the operator writes must come back, or it would write it for ever.
func TestTheHubSurvivesV1alpha1(t *testing.T) {
	const hub = `{"apiVersion":"apps.kruise.io/v1beta1","kind":"WorkloadSpread",
		"spec":{"subsets":[{"name":"a","requiredNodeSelector":{"matchExpressions":[{"key":"zone","operator":"In","values":["a"]}]},
			"preferredNodeSelector":[{"weight":1,"preference":{}}]}]},
		"status":{"conditions":[{"type":"Overlapped","status":"True","reason":"R","message":"","lastTransitionTime":"2030-01-01T00:00:00Z","observedGeneration":4}],
			"subsetStatuses":[{"name":"a","conditions":[{"type":"Schedulable","status":"True","reason":"R","message":"m","lastTransitionTime":"2030-01-01T00:00:00Z","observedGeneration":4}]}],
			"versionedSubsetStatuses":{"v":[{"name":"a","conditions":[{"type":"Schedulable","status":"True","reason":"R","message":"m","lastTransitionTime":"2030-01-01T00:00:00Z","observedGeneration":3}]}]}}}`
	old, err := Convert([]byte(hub), "apps.kruise.io/v1alpha1")
	require.NoError(t, err)
	var typed v1alpha1.WorkloadSpread
	require.NoError(t, json.Unmarshal(old, &typed))
	assert.EqualValues(t, 4, typed.Status.SubsetStatuses[0].Conditions[0].ObservedGeneration)

	again, err := Convert(old, "apps.kruise.io/v1beta1")

	require.NoError(t, err)
	assert.JSONEq(t, hub, string(again))
}

func TestOddObjectsAreConverted(t *testing.T) {
	for _, text := range []string{
		`{"apiVersion":"apps.kruise.io/v1alpha1","spec":null,"status":null}`,
		`{"apiVersion":"apps.kruise.io/v1alpha1","spec":{"subsets":[null]},"status":{"subsetStatuses":null,"versionedSubsetStatuses":{"x":null}}}`,
	} {
		_, err := Convert([]byte(text), "apps.kruise.io/v1beta1")
		require.NoError(t, err, text)
	}
	_, err := Convert([]byte(old), "apps.kruise.io/v1")
	assert.ErrorContains(t, err, "unsupported version")
}

func TestTypesAreConverted(t *testing.T) {
	raw, err := WorkloadSpreads().Convert([]byte(old), "apps.kruise.io/v1beta1")
	require.NoError(t, err)
	var hub v1beta1.WorkloadSpread
	require.NoError(t, json.Unmarshal(raw, &hub))
	assert.NotNil(t, hub.Spec.Subsets[0].RequiredNodeSelector)
	raw, err = WorkloadSpreads().Convert(raw, "apps.kruise.io/v1alpha1")
	require.NoError(t, err)
	var spoke v1alpha1.WorkloadSpread
	require.NoError(t, json.Unmarshal(raw, &spoke))
	assert.NotNil(t, spoke.Spec.Subsets[0].RequiredNodeSelectorTerm)
}

func TestPathsHaveTheNamesOfTheVersion(t *testing.T) {
	assert.Equal(t, "spec.subsets[0].requiredNodeSelectorTerm.matchExpressions[0]", oldPath("spec.subsets[0].requiredNodeSelector.matchExpressions[0]"))
	assert.Equal(t, "spec.subsets[1].preferredNodeSelectorTerms[0].weight", oldPath("spec.subsets[1].preferredNodeSelector[0].weight"))
	assert.Equal(t, "spec.subsets", oldPath("spec.subsets"))
}
