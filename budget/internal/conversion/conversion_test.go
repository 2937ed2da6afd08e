package conversion

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"github.com/flotilla-project/flotilla/core/testing/seeds"

	"github.com/flotilla-project/flotilla/budget/api/v1alpha1"
	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
)

const (
	hub   = "policy.kruise.io/v1beta1"
	spoke = "policy.kruise.io/v1alpha1"
)

func filler(seed int64) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(0.4).NumElements(0, 2).Funcs(
		func(in *metav1.Time, c randfill.Continue) { *in = metav1.Unix(1+c.Int63n(1<<32), 0) },
		func(in *intstr.IntOrString, c randfill.Continue) { *in = intstr.FromInt32(c.Int31n(9)) },
		func(in *int32, c randfill.Continue) { *in = 1 + c.Int31n(99) },
		func(in *metav1.TypeMeta, _ randfill.Continue) { *in = metav1.TypeMeta{} },
		func(in *metav1.ObjectMeta, c randfill.Continue) {
			c.Fill(&in.Name)
			c.Fill(&in.Labels)
			c.Fill(&in.Annotations)
		},
		func(in *v1beta1.PubOperation, c randfill.Continue) {
			*in = []v1beta1.PubOperation{v1beta1.DeleteOperation, v1beta1.UpdateOperation, v1beta1.EvictOperation}[c.Intn(3)]
		},
	)
}

// Whatever one version says comes back unchanged from the other.
func TestNothingIsLost(t *testing.T) {
	seeds.Each(t, 300, func(t *testing.T, seed uint64) {
		t.Helper()
		var newer v1beta1.PodUnavailableBudget
		filler(int64(seed)).Fill(&newer)
		newer.SetGroupVersionKind(schema.FromAPIVersionAndKind(hub, "PodUnavailableBudget"))
		assertSurvives(t, newer, spoke)
		var older v1alpha1.PodUnavailableBudget
		filler(int64(seed)).Fill(&older)
		older.SetGroupVersionKind(schema.FromAPIVersionAndKind(spoke, "PodUnavailableBudget"))
		assertSurvives(t, older, hub)
	})
}

func assertSurvives(t *testing.T, object any, to string) {
	t.Helper()
	raw, err := json.Marshal(object)
	require.NoError(t, err)
	var sent metav1.TypeMeta
	require.NoError(t, json.Unmarshal(raw, &sent))
	between, err := Convert(raw, to)
	require.NoError(t, err)
	back, err := Convert(between, sent.APIVersion)
	require.NoError(t, err)
	assert.JSONEq(t, string(raw), string(back), "by way of %s", between)
}

func TestAnnotationsBecomeFields(t *testing.T) {
	const (
		operations = `"kruise.io/pub-protect-operations"`
		total      = `"pub.kruise.io/protect-total-replicas"`
		ignored    = `"pub.kruise.io/ignored-pod-selector"`
	)
	cases := map[string]struct{ spoke, hub, back string }{
		"operations in any spelling": {
			spoke: `"metadata":{"annotations":{` + operations + `:"DELETE, UPDATE ,EVICT","a":"b"}}`,
			hub:   `"metadata":{"annotations":{"a":"b"}},"spec":{"protectOperations":["DELETE","UPDATE","EVICT"]}`,
			back:  `"metadata":{"annotations":{` + operations + `:"DELETE,UPDATE,EVICT","a":"b"}},"spec":{}`,
		},
		"empty items": {
			spoke: `"metadata":{"annotations":{` + operations + `:",,DELETE,,"}}`,
			hub:   `"metadata":{},"spec":{"protectOperations":["DELETE"]}`,
			back:  `"metadata":{"annotations":{` + operations + `:"DELETE"}},"spec":{}`,
		},
		"unknown operations stay what they are": {
			spoke: `"metadata":{"annotations":{` + operations + `:"BOGUS"}}`,
			hub:   `"metadata":{"annotations":{` + operations + `:"BOGUS"}}`,
			back:  `"metadata":{"annotations":{` + operations + `:"BOGUS"}}`,
		},
		"replicas": {
			spoke: `"metadata":{"annotations":{` + total + `:"15"}},"spec":{"maxUnavailable":"30%"}`,
			hub:   `"metadata":{},"spec":{"maxUnavailable":"30%","protectTotalReplicas":15}`,
			back:  `"metadata":{"annotations":{` + total + `:"15"}},"spec":{"maxUnavailable":"30%"}`,
		},
		"replicas that the field may not have": {
			spoke: `"metadata":{"annotations":{` + total + `:"0"}}`,
			hub:   `"metadata":{"annotations":{` + total + `:"0"}}`,
			back:  `"metadata":{"annotations":{` + total + `:"0"}}`,
		},
		"pods to ignore": {
			spoke: `"metadata":{"annotations":{` + ignored + `:"{\"matchLabels\":{\"a\":\"b\"}}"}}`,
			hub:   `"metadata":{},"spec":{"ignoredPodSelector":{"matchLabels":{"a":"b"}}}`,
			back:  `"metadata":{"annotations":{` + ignored + `:"{\"matchLabels\":{\"a\":\"b\"}}"}},"spec":{}`,
		},
		"pods to ignore that the field may not have": {
			spoke: `"metadata":{"annotations":{` + ignored + `:"{\"matchLabels\":5}"}}`,
			hub:   `"metadata":{"annotations":{` + ignored + `:"{\"matchLabels\":5}"}}`,
			back:  `"metadata":{"annotations":{` + ignored + `:"{\"matchLabels\":5}"}}`,
		},
		"a selector with members that the field does not have": {
			spoke: `"metadata":{"annotations":{` + ignored + `:"{\"matchLables\":{\"a\":\"b\"}}"}}`,
			hub:   `"metadata":{"annotations":{` + ignored + `:"{\"matchLables\":{\"a\":\"b\"}}"}}`,
			back:  `"metadata":{"annotations":{` + ignored + `:"{\"matchLables\":{\"a\":\"b\"}}"}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Convert([]byte(`{"apiVersion":"`+spoke+`",`+tc.spoke+`}`), hub)
			require.NoError(t, err)
			assert.JSONEq(t, `{"apiVersion":"`+hub+`",`+tc.hub+`}`, string(got))
			back, err := Convert(got, spoke)
			require.NoError(t, err)
			assert.JSONEq(t, `{"apiVersion":"`+spoke+`",`+tc.back+`}`, string(back))
		})
	}
}

func TestTheFieldWinsOverTheAnnotation(t *testing.T) {
	got, err := Convert([]byte(`{"apiVersion":"`+hub+`","metadata":{"annotations":{"pub.kruise.io/protect-total-replicas":"3"}},"spec":{"protectTotalReplicas":5}}`), spoke)
	require.NoError(t, err)
	assert.JSONEq(t, `{"apiVersion":"`+spoke+`","metadata":{"annotations":{"pub.kruise.io/protect-total-replicas":"5"}},"spec":{}}`, string(got))
}

func TestPathsAreThoseOfTheVersion(t *testing.T) {
	for hub, want := range map[string]string{
		"spec.selector":               "spec.selector",
		"spec.protectOperations[1]":   "metadata.annotations[kruise.io/pub-protect-operations]",
		"spec.protectTotalReplicas":   "metadata.annotations[pub.kruise.io/protect-total-replicas]",
		"spec.ignoredPodSelector.foo": "metadata.annotations[pub.kruise.io/ignored-pod-selector]",
	} {
		assert.Equal(t, want, path(hub))
	}
}
