package conversion

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"github.com/flotilla-project/flotilla/core/operator/conversion"

	"github.com/flotilla-project/flotilla/daemon/api/v1alpha1"
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

const rounds = 1000

func filler(seed int64) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(0.3).NumElements(0, 3).MaxDepth(9).Funcs(
		func(in *metav1.Time, c randfill.Continue) { *in = metav1.Unix(1+c.Int63n(1<<32), 0) },
		func(in *intstr.IntOrString, c randfill.Continue) { *in = intstr.FromInt32(c.Int31n(9)) },
		func(in *metav1.TypeMeta, _ randfill.Continue) { *in = metav1.TypeMeta{} },
		func(in *metav1.ObjectMeta, c randfill.Continue) {
			c.Fill(&in.Name)
			c.Fill(&in.Labels)
			c.Fill(&in.Annotations)
		},
		func(in *[]v1beta1.SecretReference, c randfill.Continue) {
			for _, name := range []string{"a", "b", "c"} {
				if c.Bool() {
					mode := []v1beta1.SecretMode{"", v1beta1.SecretBatch, "other"}[c.Intn(3)]
					*in = append(*in, v1beta1.SecretReference{Namespace: "config", Name: name, Mode: mode})
				}
			}
		},
		func(in *[]metav1.Condition, c randfill.Continue) {
			for _, kind := range []string{"Before", v1beta1.PreRecreateGrace, "After"} {
				condition := plainGrace(metav1.Unix(1+c.Int63n(1<<32), 0))
				if c.Bool() {
					c.FillNoCustom(&condition)
					condition.LastTransitionTime = metav1.Unix(1+c.Int63n(1<<32), 0)
				}
				condition.Type = kind
				if c.Bool() {
					*in = append(*in, condition)
				}
			}
		},
	)
}

func survives[A, B any](t *testing.T, there func(*A, *B) error, back func(*B, *A) error) {
	t.Helper()
	seed := rand.Int64()
	fill := filler(seed)
	for range rounds {
		var want, got A
		var between B
		fill.Fill(&want)
		before, err := json.Marshal(want)
		require.NoError(t, err)

		require.NoError(t, there(&want, &between))
		require.NoError(t, back(&between, &got))

		after, err := json.Marshal(want)
		require.NoError(t, err)
		require.JSONEq(t, string(before), string(after), "the source is changed")
		if !equality.Semantic.DeepEqual(want, got) {
			t.Fatalf("seed %d: %s", seed, diff.Diff(want, got))
		}
	}
}

func TestNodeImagesSurvive(t *testing.T) {
	t.Run("the hub through v1alpha1", func(t *testing.T) { survives(t, nodeImageFromHub, nodeImageToHub) })
	t.Run("v1alpha1 through the hub", func(t *testing.T) { survives(t, nodeImageToHub, nodeImageFromHub) })
}

func TestRecreateRequestsSurvive(t *testing.T) {
	t.Run("the hub through v1alpha1", func(t *testing.T) { survives(t, recreateFromHub, recreateToHub) })
	t.Run("v1alpha1 through the hub", func(t *testing.T) { survives(t, recreateToHub, recreateFromHub) })
}

func image(secrets ...v1beta1.SecretReference) v1beta1.ImageSpec {
	return v1beta1.ImageSpec{PullSecrets: secrets, Tags: []v1beta1.ImageTagSpec{{Tag: "1"}}}
}

func TestModesStandInAnAnnotation(t *testing.T) {
	batch := v1beta1.SecretReference{Namespace: "config", Name: "a", Mode: v1beta1.SecretBatch}
	plain := v1beta1.SecretReference{Namespace: "config", Name: "a"}
	cases := []struct {
		name   string
		images map[string]v1beta1.ImageSpec
		want   string
	}{
		{"without modes there is no annotation", map[string]v1beta1.ImageSpec{"nginx": image(plain)}, ""},
		{"images agree", map[string]v1beta1.ImageSpec{"nginx": image(batch), "redis": image(batch)}, `{"config/a":"batch"}`},
		{"images disagree", map[string]v1beta1.ImageSpec{"nginx": image(batch), "redis": image(plain)}, `{"nginx config/a":"batch"}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var spoke v1alpha1.NodeImage
			require.NoError(t, nodeImageFromHub(&v1beta1.NodeImage{Spec: v1beta1.NodeImageSpec{Images: c.images}}, &spoke))
			assert.Equal(t, c.want, spoke.Annotations[v1beta1.SecretModesAnnotation])

			var hub v1beta1.NodeImage
			require.NoError(t, nodeImageToHub(&spoke, &hub))
			assert.Equal(t, c.images, hub.Spec.Images)
			assert.Empty(t, hub.Annotations)
		})
	}
}

func TestASecretThatWasAddedThroughV1alpha1HasNoMode(t *testing.T) {
	stored := &v1beta1.NodeImage{}
	stored.Spec.Images = map[string]v1beta1.ImageSpec{"nginx": image(v1beta1.SecretReference{Namespace: "config", Name: "a", Mode: v1beta1.SecretBatch})}
	var spoke v1alpha1.NodeImage
	require.NoError(t, nodeImageFromHub(stored, &spoke))
	nginx := spoke.Spec.Images["nginx"]
	nginx.PullSecrets = []v1alpha1.SecretReference{{Namespace: "config", Name: "b"}}
	spoke.Spec.Images["nginx"] = nginx

	var hub v1beta1.NodeImage
	require.NoError(t, nodeImageToHub(&spoke, &hub))

	assert.Equal(t, []v1beta1.SecretReference{{Namespace: "config", Name: "b"}}, hub.Spec.Images["nginx"].PullSecrets)
	assert.Empty(t, LostModes(stored, &hub), "the secret is not there any more")
}

func TestLostModes(t *testing.T) {
	stored := &v1beta1.NodeImage{}
	stored.Spec.Images = map[string]v1beta1.ImageSpec{"nginx": image(v1beta1.SecretReference{Namespace: "config", Name: "a", Mode: v1beta1.SecretBatch})}
	cases := []struct {
		name   string
		change func(*v1alpha1.NodeImage)
		want   string
	}{
		{"a client that carries the annotation loses nothing", func(*v1alpha1.NodeImage) {}, ""},
		{
			"a client that drops the annotation would lose the mode",
			func(o *v1alpha1.NodeImage) { o.Annotations = nil },
			"v1alpha1 cannot express mode batch of secret config/a of image nginx",
		},
		{
			"a client may accept the loss",
			func(o *v1alpha1.NodeImage) {
				o.Annotations = map[string]string{conversion.AcceptLossAnnotation: "true"}
			},
			"",
		},
		{
			"an image that goes takes its secrets with it",
			func(o *v1alpha1.NodeImage) { o.Annotations, o.Spec.Images = nil, nil },
			"",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var spoke v1alpha1.NodeImage
			var hub v1beta1.NodeImage
			require.NoError(t, nodeImageFromHub(stored, &spoke))
			c.change(&spoke)
			require.NoError(t, nodeImageToHub(&spoke, &hub))
			got := LostModes(stored, &hub)
			if c.want == "" {
				assert.Empty(t, got)
			}
			assert.Contains(t, got, c.want)
		})
	}
}

const (
	snapshotText = `[{"name":"app","ready":true,"restartCount":1,"containerID":"containerd://1"}]`
	acquiredText = "2026-03-04T05:06:07Z"
)

func TestFieldsStandAsAnnotations(t *testing.T) {
	since := metav1.NewTime(time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC))
	hub := &v1beta1.ContainerRecreateRequest{}
	hub.Status.ContainerStatusSnapshot = []v1beta1.ContainerStatusSnapshot{{Name: "app", Ready: true, RestartCount: 1, ContainerID: "containerd://1"}}
	hub.Status.Conditions = []metav1.Condition{plainGrace(since)}

	var spoke v1alpha1.ContainerRecreateRequest
	require.NoError(t, recreateFromHub(hub, &spoke))
	assert.Equal(t, map[string]string{
		v1beta1.SyncContainerStatusesAnnotation: snapshotText,
		v1beta1.UnreadyAcquiredAnnotation:       acquiredText,
	}, spoke.Annotations)

	var again v1beta1.ContainerRecreateRequest
	require.NoError(t, recreateToHub(&spoke, &again))
	assert.True(t, equality.Semantic.DeepEqual(hub, &again), "%v", again)
}

func TestAnnotationsOfV1alpha1AreReadAndStripped(t *testing.T) {
	grace := plainGrace(metav1.NewTime(time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)))
	refused := metav1.Condition{Type: v1beta1.PreRecreateGrace, Status: metav1.ConditionFalse, Reason: "Released", LastTransitionTime: grace.LastTransitionTime}
	other := metav1.Condition{Type: "Other", Status: metav1.ConditionTrue, Reason: "Other", LastTransitionTime: grace.LastTransitionTime}
	conditions := func(all ...metav1.Condition) string {
		text, err := json.Marshal(all)
		require.NoError(t, err)
		return string(text)
	}
	cases := []struct {
		name        string
		annotations map[string]string
		want        []metav1.Condition
	}{
		{"none", nil, nil},
		{"empty", map[string]string{v1beta1.UnreadyAcquiredAnnotation: ""}, nil},
		{"no time", map[string]string{v1beta1.UnreadyAcquiredAnnotation: "now", v1beta1.SyncContainerStatusesAnnotation: "{"}, nil},
		{"another zone", map[string]string{v1beta1.UnreadyAcquiredAnnotation: "2026-03-04T06:06:07+01:00"}, []metav1.Condition{grace}},
		{"the user took the time away", map[string]string{v1beta1.ConditionsAnnotation: conditions(grace, other)}, []metav1.Condition{other}},
		{
			"the user changed the time",
			map[string]string{v1beta1.ConditionsAnnotation: conditions(refused, other), v1beta1.UnreadyAcquiredAnnotation: acquiredText},
			[]metav1.Condition{grace, other},
		},
		{"a condition that is not True needs no time", map[string]string{v1beta1.ConditionsAnnotation: conditions(refused)}, []metav1.Condition{refused}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			spoke := &v1alpha1.ContainerRecreateRequest{}
			spoke.Annotations = c.annotations
			var hub v1beta1.ContainerRecreateRequest
			require.NoError(t, recreateToHub(spoke, &hub))
			assert.True(t, equality.Semantic.DeepEqual(c.want, hub.Status.Conditions), "%v", hub.Status.Conditions)
			assert.Empty(t, hub.Status.ContainerStatusSnapshot)
			assert.Empty(t, hub.Annotations)
		})
	}
}

func TestConvertPicksTheKind(t *testing.T) {
	cases := []struct{ name, raw, version, want, refusal string }{
		{
			"NodeImage", `{"apiVersion":"apps.kruise.io/v1alpha1","kind":"NodeImage","metadata":{"name":"n"},"spec":{}}`,
			"apps.kruise.io/v1beta1", `{"apiVersion":"apps.kruise.io/v1beta1","kind":"NodeImage","metadata":{"name":"n"},"spec":{}}`, "",
		},
		{
			"a request without a phase", `{"apiVersion":"apps.kruise.io/v1alpha1","kind":"ContainerRecreateRequest","metadata":{"name":"r"},"spec":{"podName":"p","containers":[]},"status":{"phase":""}}`,
			"apps.kruise.io/v1beta1", `{"apiVersion":"apps.kruise.io/v1beta1","kind":"ContainerRecreateRequest","metadata":{"name":"r"},"spec":{"podName":"p","containers":[]}}`, "",
		},
		{
			"the same version", `{"apiVersion":"apps.kruise.io/v1beta1","kind":"NodeImage","more":1}`,
			"apps.kruise.io/v1beta1", `{"apiVersion":"apps.kruise.io/v1beta1","kind":"NodeImage","more":1}`, "",
		},
		{"another kind", `{"apiVersion":"apps.kruise.io/v1alpha1","kind":"CloneSet"}`, "apps.kruise.io/v1beta1", "", `unsupported kind: "CloneSet"`},
		{"another version", `{"apiVersion":"apps.kruise.io/v1","kind":"NodeImage"}`, "apps.kruise.io/v1beta1", "", "unsupported version: v1"},
		{"no object", `[`, "apps.kruise.io/v1beta1", "", "decode"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := Convert([]byte(c.raw), c.version)
			if c.refusal != "" {
				require.ErrorContains(t, err, c.refusal)
				return
			}
			require.NoError(t, err)
			assert.JSONEq(t, c.want, string(got))
		})
	}
}
