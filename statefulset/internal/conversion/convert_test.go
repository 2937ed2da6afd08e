package conversion

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/operator/conversion"
	"github.com/flotilla-project/flotilla/statefulset/api/v1alpha1"
	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

const hubVersion, spokeVersion = "apps.kruise.io/v1beta1", "apps.kruise.io/v1alpha1"

const rounds = 400

func filler(seed int64) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(0.4).NumElements(0, 3).MaxDepth(9).Funcs(
		func(in *intstr.IntOrString, c randfill.Continue) {
			*in = intstr.FromInt32(c.Int31n(9))
			if c.Bool() {
				*in = intstr.FromString("<30%>")
			}
		},
		func(in *metav1.TypeMeta, _ randfill.Continue) { *in = metav1.TypeMeta{} },
		func(in *metav1.Time, c randfill.Continue) { *in = metav1.Unix(c.Int63n(1<<32), 0) },
		func(in *metav1.ManagedFieldsEntry, _ randfill.Continue) {
			*in = metav1.ManagedFieldsEntry{Manager: "m"}
		},
		func(in *resource.Quantity, c randfill.Continue) {
			*in = *resource.NewQuantity(c.Int63n(1<<20), resource.DecimalSI)
		},
	)
}

// convert converts JSON there and requires that the given bytes stay as they are.
func convert(t *testing.T, raw []byte, version string) []byte {
	t.Helper()
	before := string(raw)
	converted, err := Convert(raw, version)
	require.NoError(t, err)
	require.Equal(t, before, string(raw))
	return converted
}

func TestHubSurvivesV1alpha1(t *testing.T) {
	seed := rand.Int64()
	fill := filler(seed)
	for range rounds {
		var want, got v1beta1.StatefulSet
		fill.Fill(&want)
		before := want.DeepCopy()

		var spoke v1alpha1.StatefulSet
		require.NoError(t, FromHub(&want, &spoke))
		require.NoError(t, ToHub(&spoke, &got))

		require.Equal(t, want, *before, "the source is changed")
		if !equality.Semantic.DeepEqual(&want, &got) {
			t.Fatalf("seed %d: %s", seed, diff.Diff(&want, &got))
		}
	}
}

func TestV1alpha1SurvivesHub(t *testing.T) {
	seed := rand.Int64()
	fill := filler(seed)
	for range rounds {
		var want, got v1alpha1.StatefulSet
		fill.Fill(&want)
		if rand.IntN(2) == 0 {
			metav1.SetMetaDataAnnotation(&want.ObjectMeta, FieldsAnnotation, `{"spec":{"reserveOrdinals":[1,"3-5"]},"status":{"updatedReadyReplicas":0}}`)
		}
		raw, err := json.Marshal(want)
		require.NoError(t, err)
		raw = []byte(strings.Replace(string(raw), "{", `{"apiVersion":"`+spokeVersion+`",`, 1))

		raw = convert(t, convert(t, raw, hubVersion), spokeVersion)

		require.NoError(t, json.Unmarshal(raw, &got))
		got.TypeMeta = metav1.TypeMeta{}
		if !equality.Semantic.DeepEqual(&want, &got) {
			t.Fatalf("seed %d: %s", seed, diff.Diff(&want, &got))
		}
	}
}

func TestConvertKeepsWhatIsWritten(t *testing.T) {
	const head = `"kind":"StatefulSet","later":1`
	const both = `"replicas":2,"minReadySeconds":0,"updateStrategy":{"rollingUpdate":{"paused":false}},
		"template":{"metadata":{"creationTimestamp":null},"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":0.5}},"unknown":[1]}]}}`
	hub := `{"apiVersion":"apps.kruise.io/v1beta1",` + head + `,
		"metadata":{"name":"web","generation":7,"annotations":{"a":"b"}},
		"status":{"replicas":0,"updatedReadyReplicas":0,"later":{}},
		"spec":{` + both + `,"reserveOrdinals":[1,"2-3"],"volumeClaimUpdateStrategy":{},"ordinals":{"start":0}}}`
	spoke := `{"apiVersion":"apps.kruise.io/v1alpha1",` + head + `,
		"metadata":{"name":"web","generation":7,"annotations":{"a":"b",
			"apps.kruise.io/v1beta1-fields":"{\"spec\":{\"ordinals\":{\"start\":0},\"reserveOrdinals\":[1,\"2-3\"],\"volumeClaimUpdateStrategy\":{}},\"status\":{\"updatedReadyReplicas\":0}}"}},
		"status":{"replicas":0,"later":{}},
		"spec":{` + both + `}}`

	assert.JSONEq(t, spoke, string(convert(t, []byte(hub), spokeVersion)))
	assert.JSONEq(t, hub, string(convert(t, []byte(spoke), hubVersion)))
	assert.Equal(t, hub, string(convert(t, []byte(hub), hubVersion)), "nothing to convert")
}

func TestWhatBothVersionsHaveIsCarriedOverAsItIs(t *testing.T) {
	raw := `{"apiVersion":"apps.kruise.io/v1beta1","kind":"StatefulSet","metadata":{"name":"web"},"spec":{"replicas":1}}`
	assert.JSONEq(t, strings.Replace(raw, "v1beta1", "v1alpha1", 1), string(convert(t, []byte(raw), spokeVersion)), "no annotation")
}

func TestTheListOfFieldsIsWhatV1alpha1Lacks(t *testing.T) {
	for part, versions := range map[string][2]reflect.Type{
		"spec":   {reflect.TypeFor[v1beta1.StatefulSetSpec](), reflect.TypeFor[v1alpha1.StatefulSetSpec]()},
		"status": {reflect.TypeFor[v1beta1.StatefulSetStatus](), reflect.TypeFor[v1alpha1.StatefulSetStatus]()},
	} {
		hub, spoke := jsonNames(versions[0]), jsonNames(versions[1])
		lacks := slices.DeleteFunc(slices.Clone(hub), func(name string) bool { return slices.Contains(spoke, name) })
		assert.ElementsMatch(t, lacks, fieldsOf(part), part)
		assert.Subset(t, hub, spoke, part)
	}
}

func jsonNames(of reflect.Type) []string {
	var names []string
	for f := range of.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

func TestFieldsThatCannotBeReadStayForAdmissionToRefuse(t *testing.T) {
	cases := []struct{ name, text, want string }{
		{"no JSON", "{", "unexpected end of JSON input"},
		{"no object", `{"spec":[]}`, "spec must be an object"},
		{"a field of both versions", `{"spec":{"replicas":3}}`, "unknown field spec.replicas"},
		{"another part", `{"metadata":{"name":"x"}}`, "unknown field metadata.name"},
		{"a misspelt member", `{"spec":{"ordinals":{"begin":3}}}`, `unknown field "spec.ordinals.begin"`},
		{"another type", `{"spec":{"ordinals":{"start":"3"}}}`, "cannot unmarshal string"},
		{"too large a number", `{"spec":{"ordinals":{"start":3000000000}}}`, "cannot unmarshal number"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			spoke, hub := &v1alpha1.StatefulSet{}, &v1beta1.StatefulSet{}
			spoke.Annotations = map[string]string{FieldsAnnotation: c.text}
			require.NoError(t, ToHub(spoke, hub))
			assert.Equal(t, c.text, hub.Annotations[FieldsAnnotation])
			assert.Equal(t, v1beta1.StatefulSetSpec{}, hub.Spec)
			assert.Contains(t, Unreadable(hub), c.want)
		})
	}
}

func TestTheHubFormHasNoAnnotation(t *testing.T) {
	hub := &v1beta1.StatefulSet{}
	assert.Empty(t, Unreadable(hub))
	hub.Annotations = map[string]string{FieldsAnnotation: `{"spec":{"reserveOrdinals":[1]}}`}
	assert.Contains(t, Unreadable(hub), "in v1beta1, set the fields themselves")
}

func TestConvertRefusesWhatItDoesNotKnow(t *testing.T) {
	cases := []struct{ name, raw, version, want string }{
		{"wanted version", `{"apiVersion":"apps.kruise.io/v1beta1"}`, "apps.kruise.io/v2", "unsupported version: v1beta1 to v2"},
		{"given version", `{"apiVersion":"apps.kruise.io/v2"}`, hubVersion, "unsupported version: v2 to v1beta1"},
		{"no JSON", `{`, hubVersion, "decode: "},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Convert([]byte(c.raw), c.version)
			assert.ErrorContains(t, err, c.want)
		})
	}
}

func TestLost(t *testing.T) {
	stored := func() *v1beta1.StatefulSet {
		return &v1beta1.StatefulSet{Spec: v1beta1.StatefulSetSpec{
			VolumeClaimUpdateStrategy: v1beta1.VolumeClaimUpdateStrategy{Type: v1beta1.OnPodRollingUpdate},
			ReserveOrdinals:           []intstr.IntOrString{intstr.FromInt32(1)},
			Lifecycle:                 &workload.Lifecycle{PreDelete: &workload.LifecycleHook{}},
			ScaleStrategy:             &v1beta1.StatefulSetScaleStrategy{MaxUnavailable: new(intstr.FromInt32(1))},
			PersistentVolumeClaimRetentionPolicy: &v1beta1.StatefulSetPersistentVolumeClaimRetentionPolicy{
				WhenScaled: appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
			},
			Ordinals: &v1beta1.StatefulSetOrdinals{Start: 3},
		}}
	}
	all := fieldsOf("spec")
	cases := []struct {
		name   string
		stored func(*v1beta1.StatefulSet)
		change func(*v1alpha1.StatefulSet)
		want   []string
	}{
		{"a client that carries the annotation loses nothing", nil, func(*v1alpha1.StatefulSet) {}, nil},
		{"a client that drops it would lose every field", nil, func(set *v1alpha1.StatefulSet) { set.Annotations = nil }, all},
		{
			"a client may accept the loss", nil,
			func(set *v1alpha1.StatefulSet) {
				set.Annotations = map[string]string{conversion.AcceptLossAnnotation: "true"}
			}, nil,
		},
		{
			"fields that say what their absence says are not missed",
			func(set *v1beta1.StatefulSet) {
				retain := appsv1.RetainPersistentVolumeClaimRetentionPolicyType
				set.Spec = v1beta1.StatefulSetSpec{
					VolumeClaimUpdateStrategy:            v1beta1.VolumeClaimUpdateStrategy{Type: v1beta1.OnClaimDelete},
					Lifecycle:                            &workload.Lifecycle{},
					ScaleStrategy:                        &v1beta1.StatefulSetScaleStrategy{},
					PersistentVolumeClaimRetentionPolicy: &v1beta1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenDeleted: retain, WhenScaled: retain},
					Ordinals:                             &v1beta1.StatefulSetOrdinals{},
				}
			},
			func(set *v1alpha1.StatefulSet) { set.Annotations = nil }, nil,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			old, spoke, updated := stored(), &v1alpha1.StatefulSet{}, &v1beta1.StatefulSet{}
			if c.stored != nil {
				c.stored(old)
			}
			require.NoError(t, FromHub(old, spoke))
			c.change(spoke)
			require.NoError(t, ToHub(spoke, updated))
			assert.ElementsMatch(t, c.want, Lost(old, updated))
		})
	}
}

func TestV1alpha1Path(t *testing.T) {
	for hub, want := range map[string]string{
		"spec.replicas":                          "spec.replicas",
		"spec.ordinalsAndMore":                   "spec.ordinalsAndMore",
		"spec.ordinals.start":                    "metadata.annotations[apps.kruise.io/v1beta1-fields].spec.ordinals.start",
		"spec.reserveOrdinals[2]":                "metadata.annotations[apps.kruise.io/v1beta1-fields].spec.reserveOrdinals[2]",
		"spec.lifecycle":                         "metadata.annotations[apps.kruise.io/v1beta1-fields].spec.lifecycle",
		"spec.template.spec.containers[0].image": "spec.template.spec.containers[0].image",
	} {
		assert.Equal(t, want, V1alpha1Path(hub))
	}
}
