package conversion

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/cloneset/api/v1alpha1"
	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

const hubVersion, spokeVersion = "apps.kruise.io/v1beta1", "apps.kruise.io/v1alpha1"

func TestConvertKeepsWhatIsWritten(t *testing.T) {
	const rest = `"replicas":2,"minReadySeconds":0,"selector":{"matchLabels":{"a":"b"}},
		"template":{"metadata":{"creationTimestamp":null},"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":0.5}},"unknown":[1]}]}},
		"volumeClaimTemplates":[{"status":{"phase":"Pending"}}]`
	const head = `"kind":"CloneSet","metadata":{"name":"web","creationTimestamp":"2026-01-02T03:04:05Z","generation":7},"status":{"replicas":0,"later":{}}`
	spoke := `{"apiVersion":"apps.kruise.io/v1alpha1",` + head + `,"spec":{` + rest + `,
		"scaleStrategy":{"disablePVCReuse":false,"podsToDelete":[]},
		"updateStrategy":{"type":"InPlaceIfPossible","paused":false,"partition":0,"inPlaceUpdateStrategy":{"gracePeriodSeconds":0}}}}`
	hub := `{"apiVersion":"apps.kruise.io/v1beta1",` + head + `,"spec":{` + rest + `,
		"scaleStrategy":{"enablePVCReuse":true,"podsToDelete":[],"excludePreparingDelete":false},
		"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"podUpdatePolicy":"InPlaceIfPossible","paused":false,"partition":0,"inPlaceUpdateStrategy":{"gracePeriodSeconds":0}}}}}`

	got, err := Convert([]byte(spoke), hubVersion)
	require.NoError(t, err)
	assert.JSONEq(t, hub, string(got))
	got, err = Convert([]byte(hub), spokeVersion)
	require.NoError(t, err)
	assert.JSONEq(t, spoke, string(got))
	got, err = Convert([]byte(hub), hubVersion)
	require.NoError(t, err)
	assert.Equal(t, hub, string(got))
}

func TestConvertWritesOppositeDefaultsOut(t *testing.T) {
	for from, want := range map[string]string{
		`{"apiVersion":"apps.kruise.io/v1alpha1","kind":"CloneSet"}`: `{"enablePVCReuse":true,"excludePreparingDelete":false}`,
		`{"apiVersion":"apps.kruise.io/v1beta1","kind":"CloneSet"}`:  `{"disablePVCReuse":true}`,
	} {
		to := hubVersion
		if want == `{"disablePVCReuse":true}` {
			to = spokeVersion
		}
		raw, err := Convert([]byte(from), to)
		require.NoError(t, err)
		var got struct {
			Spec struct{ ScaleStrategy json.RawMessage }
		}
		require.NoError(t, json.Unmarshal(raw, &got))
		assert.JSONEq(t, want, string(got.Spec.ScaleStrategy))
	}
}

func TestConvertAgreesWithTheTypes(t *testing.T) {
	seed := rand.Int64()
	fill := filler(seed)
	for range rounds / 4 {
		var hub v1beta1.CloneSet
		fill.Fill(&hub)
		hub.TypeMeta = metav1.TypeMeta{Kind: v1beta1.Kind, APIVersion: hubVersion}
		hub.Status, hub.Spec.Template, hub.Spec.VolumeClaimTemplates = v1beta1.CloneSetStatus{}, v1beta1.CloneSet{}.Spec.Template, nil
		raw, err := json.Marshal(hub)
		require.NoError(t, err)

		raw, err = Convert(raw, spokeVersion)
		require.NoError(t, err)
		var got, want v1alpha1.CloneSet
		require.NoError(t, json.Unmarshal(raw, &got))
		require.NoError(t, FromHub(&hub, &want))
		got.TypeMeta = metav1.TypeMeta{}
		gotJSON, err := json.Marshal(got)
		require.NoError(t, err)
		wantJSON, err := json.Marshal(want)
		require.NoError(t, err)
		require.JSONEq(t, string(wantJSON), string(gotJSON), "seed %d", seed)
	}
}

func TestConvertRefusesWhatItDoesNotKnow(t *testing.T) {
	cases := []struct{ name, raw, version, want string }{
		{"wanted version", `{"apiVersion":"apps.kruise.io/v1beta1"}`, "apps.kruise.io/v2", "unsupported version: v1beta1 to v2"},
		{"given version", `{"apiVersion":"apps.kruise.io/v2"}`, hubVersion, "unsupported version: v2 to v1beta1"},
		{"no JSON", `{`, hubVersion, "decode: "},
		{"other types", `{"apiVersion":"apps.kruise.io/v1alpha1","spec":{"updateStrategy":{"paused":"yes"}}}`, hubVersion, "decode: "},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Convert([]byte(c.raw), c.version)
			assert.ErrorContains(t, err, c.want)
		})
	}
}
