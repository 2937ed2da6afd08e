package conversion

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"github.com/flotilla-project/flotilla/daemonset/api/v1alpha1"
	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
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
		// v1alpha1 has no other way to say false than not to say true.
		func(in *v1beta1.DaemonSetScaleStrategy, _ randfill.Continue) { in.PartitionedScaling = true },
	)
}

// convert converts JSON there and requires that the given bytes stay as they are.
func convert(t *testing.T, raw, version string) string {
	t.Helper()
	given := []byte(raw)
	converted, err := Convert(given, version)
	require.NoError(t, err)
	require.Equal(t, raw, string(given))
	return string(converted)
}

func TestHubSurvivesV1alpha1(t *testing.T) {
	seed := rand.Int64()
	fill := filler(seed)
	for range rounds {
		var want, got v1beta1.DaemonSet
		fill.Fill(&want)
		before := want.DeepCopy()

		var spoke v1alpha1.DaemonSet
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
		var want, got v1alpha1.DaemonSet
		fill.Fill(&want)
		if rand.IntN(2) == 0 {
			metav1.SetMetaDataAnnotation(&want.ObjectMeta, v1beta1.ProgressiveCreatePodAnnotation, []string{"true", "false", "x"}[rand.IntN(3)])
		}
		raw, err := json.Marshal(want)
		require.NoError(t, err)
		text := strings.Replace(string(raw), "{", `{"apiVersion":"`+spokeVersion+`",`, 1)

		text = convert(t, convert(t, text, hubVersion), spokeVersion)

		require.NoError(t, json.Unmarshal([]byte(text), &got))
		got.TypeMeta = metav1.TypeMeta{}
		if !equality.Semantic.DeepEqual(&want, &got) {
			t.Fatalf("seed %d: %s", seed, diff.Diff(&want, &got))
		}
	}
}

// of is a DaemonSet with the annotations and the spec.
func of(version, annotations, spec string) string {
	return `{"apiVersion":"` + version + `","kind":"DaemonSet","metadata":{"name":"web","annotations":{` + annotations + `}},"spec":{` + spec + `}}`
}

func TestPartitionedScalingIsAnAnnotationOfV1alpha1(t *testing.T) {
	const yes, no, odd = `"daemonset.kruise.io/progressive-create-pod":"true"`, `"daemonset.kruise.io/progressive-create-pod":"false"`, `"a":"b"`
	const on, off, empty = `"scaleStrategy":{"partitionedScaling":true}`, `"scaleStrategy":{"partitionedScaling":false}`, `"scaleStrategy":{}`
	for name, c := range map[string]struct{ hubNotes, hubSpec, spokeNotes string }{
		"on":                                 {odd, on, odd + "," + yes},
		"off":                                {odd, off, odd},
		"empty":                              {odd, empty, odd},
		"absent":                             {odd, "", odd},
		"off beside the annotation":          {odd + "," + yes, off, odd},
		"on beside another spelling":         {odd + "," + no, on, odd + "," + yes},
		"another spelling stays":             {odd + "," + no, "", odd + "," + no},
		"the annotation of an earlier store": {odd + "," + yes, "", odd + "," + yes},
	} {
		t.Run(name, func(t *testing.T) {
			assert.JSONEq(t, of(spokeVersion, c.spokeNotes, ""), convert(t, of(hubVersion, c.hubNotes, c.hubSpec), spokeVersion))
		})
	}
	assert.JSONEq(t, of(hubVersion, odd, on), convert(t, of(spokeVersion, odd+","+yes, ""), hubVersion))
	assert.JSONEq(t, of(hubVersion, no, ""), convert(t, of(spokeVersion, no, ""), hubVersion))
	assert.JSONEq(t, of(hubVersion, odd, ""), convert(t, of(spokeVersion, odd, ""), hubVersion))
}

func TestTurningPartitionedScalingOffOutlivesAWriteThroughV1alpha1(t *testing.T) {
	hub := of(hubVersion, `"a":"b","daemonset.kruise.io/progressive-create-pod":"true"`, `"scaleStrategy":{"partitionedScaling":false}`)
	assert.JSONEq(t, of(hubVersion, `"a":"b"`, ""), convert(t, convert(t, hub, spokeVersion), hubVersion))
}

func TestSurgingIsStandardWithASurge(t *testing.T) {
	for name, c := range map[string]struct{ spoke, hub string }{
		"no numbers":   {`"rollingUpdateType":"Surging"`, `"rollingUpdateType":"Standard","maxSurge":1,"maxUnavailable":0`},
		"null":         {`"rollingUpdateType":"Surging","maxSurge":null`, `"rollingUpdateType":"Standard","maxSurge":1,"maxUnavailable":0`},
		"both numbers": {`"rollingUpdateType":"Surging","maxSurge":"30%","maxUnavailable":2`, `"rollingUpdateType":"Standard","maxSurge":"30%","maxUnavailable":2`},
		"another type": {`"rollingUpdateType":"InPlaceIfPossible"`, `"rollingUpdateType":"InPlaceIfPossible"`},
	} {
		t.Run(name, func(t *testing.T) {
			strategy := func(rolling string) string {
				return `"minReadySeconds":1,"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":1,` + rolling + `}}`
			}
			assert.JSONEq(t, of(hubVersion, "", strategy(c.hub)), convert(t, of(spokeVersion, "", strategy(c.spoke)), hubVersion))
		})
	}
}

func TestConvertKeepsWhatIsWritten(t *testing.T) {
	const same = `"kind":"DaemonSet","later":1,"metadata":{"name":"web"},"spec":{"minReadySeconds":0,
		"template":{"metadata":{"creationTimestamp":null},"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":0.5}},"unknown":[1]}]}}},`
	hub := `{"apiVersion":"apps.kruise.io/v1beta1",` + same + `"status":{"numberReady":0,"updateRevision":"6d8f","later":{}}}`
	spoke := `{"apiVersion":"apps.kruise.io/v1alpha1",` + same + `"status":{"numberReady":0,"daemonSetHash":"6d8f","later":{}}}`
	assert.JSONEq(t, spoke, convert(t, hub, spokeVersion))
	assert.JSONEq(t, hub, convert(t, spoke, hubVersion))
	assert.Equal(t, hub, convert(t, hub, hubVersion), "nothing to convert")
}

func TestConvertRefusesWhatItDoesNotKnow(t *testing.T) {
	for name, c := range map[string]struct{ raw, version, want string }{
		"wanted version": {`{"apiVersion":"apps.kruise.io/v1beta1"}`, "apps.kruise.io/v2", "unsupported version: v1beta1 to v2"},
		"given version":  {`{"apiVersion":"apps.kruise.io/v2"}`, hubVersion, "unsupported version: v2 to v1beta1"},
		"no JSON":        {`{`, hubVersion, "decode: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Convert([]byte(c.raw), c.version)
			assert.ErrorContains(t, err, c.want)
		})
	}
}

func TestV1alpha1Path(t *testing.T) {
	for hub, want := range map[string]string{
		"spec.selector":                         "spec.selector",
		"spec.scaleStrategyAndMore":             "spec.scaleStrategyAndMore",
		"spec.scaleStrategy":                    "metadata.annotations[daemonset.kruise.io/progressive-create-pod]",
		"spec.scaleStrategy.partitionedScaling": "metadata.annotations[daemonset.kruise.io/progressive-create-pod]",
	} {
		assert.Equal(t, want, V1alpha1Path(hub))
	}
}
