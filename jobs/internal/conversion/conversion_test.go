package conversion

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/randfill"

	"github.com/flotilla-project/flotilla/jobs/api/v1alpha1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

const (
	rounds = 300
	hub    = "apps.kruise.io/v1beta1"
	spoke  = "apps.kruise.io/v1alpha1"
)

func filler(seed int64) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(0.4).NumElements(0, 2).MaxDepth(12).Funcs(
		func(in *metav1.Time, c randfill.Continue) { *in = metav1.Unix(1+c.Int63n(1<<32), 0) },
		func(in *intstr.IntOrString, c randfill.Continue) { *in = intstr.FromInt32(c.Int31n(9)) },
		func(in *resource.Quantity, c randfill.Continue) {
			*in = *resource.NewQuantity(c.Int63n(9), resource.DecimalSI)
		},
		func(in *metav1.TypeMeta, _ randfill.Continue) { *in = metav1.TypeMeta{} },
		func(in *metav1.ObjectMeta, c randfill.Continue) {
			c.Fill(&in.Name)
			c.Fill(&in.Labels)
			c.Fill(&in.Annotations)
		},
		func(in *corev1.PodSpec, c randfill.Continue) {
			in.Containers = []corev1.Container{{Name: c.String(5), Image: c.String(5)}}
			c.Fill(&in.NodeSelector)
			c.Fill(&in.Tolerations)
		},
		func(in *v1beta1.CronJobTemplate, c randfill.Continue) {
			switch c.Intn(4) {
			case 0:
				c.Fill(&in.JobTemplate)
			case 1:
				c.Fill(&in.BroadcastJobTemplate)
			case 2:
				c.Fill(&in.ImageListPullJobTemplate)
			}
		},
	)
}

// survives converts random objects there and back, as JSON and as Go types.
func survives[A, B any, P interface {
	*A
	client.Object
}, Q interface {
	*B
	client.Object
}](t *testing.T, kind, from, to string, there func(P, Q) error, back func(Q, P) error) {
	t.Helper()
	seed := rand.Int64()
	fill := filler(seed)
	for range rounds {
		var object, got A
		var between B
		fill.Fill(&object)
		P(&object).GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(from, kind))
		raw, err := json.Marshal(object)
		require.NoError(t, err)

		converted, err := Convert(raw, to)
		require.NoError(t, err, "seed %d", seed)
		restored, err := Convert(converted, from)
		require.NoError(t, err, "seed %d", seed)
		require.JSONEq(t, string(raw), string(restored), "seed %d", seed)

		require.NoError(t, there(&object, &between))
		require.NoError(t, back(&between, &got))
		P(&got).GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(from, kind))
		restored, err = json.Marshal(got)
		require.NoError(t, err)
		require.JSONEq(t, string(raw), string(restored), "seed %d", seed)
	}
}

func TestObjectsSurvive(t *testing.T) {
	t.Run("AdvancedCronJob", func(t *testing.T) {
		c := typed[*v1beta1.AdvancedCronJob, *v1alpha1.AdvancedCronJob](cronJobToHub, cronJobFromHub)
		survives(t, v1beta1.AdvancedCronJobKind, hub, spoke, c.FromHub, c.ToHub)
		survives(t, v1beta1.AdvancedCronJobKind, spoke, hub, c.ToHub, c.FromHub)
	})
	t.Run("BroadcastJob", func(t *testing.T) {
		c := typed[*v1beta1.BroadcastJob, *v1alpha1.BroadcastJob](carry, carry)
		survives(t, v1beta1.BroadcastJobKind, hub, spoke, c.FromHub, c.ToHub)
		survives(t, v1beta1.BroadcastJobKind, spoke, hub, c.ToHub, c.FromHub)
	})
	t.Run("ImagePullJob", func(t *testing.T) {
		c := typed[*v1beta1.ImagePullJob, *v1alpha1.ImagePullJob](carry, carry)
		survives(t, v1beta1.ImagePullJobKind, hub, spoke, c.FromHub, c.ToHub)
		survives(t, v1beta1.ImagePullJobKind, spoke, hub, c.ToHub, c.FromHub)
	})
	t.Run("ImageListPullJob", func(t *testing.T) {
		c := typed[*v1beta1.ImageListPullJob, *v1alpha1.ImageListPullJob](carry, carry)
		survives(t, v1beta1.ImageListPullJobKind, hub, spoke, c.FromHub, c.ToHub)
		survives(t, v1beta1.ImageListPullJobKind, spoke, hub, c.ToHub, c.FromHub)
	})
}

func TestTheImageListTemplateIsKeptInAnAnnotation(t *testing.T) {
	cases := []struct{ name, raw, version, want string }{
		{
			"down", `{"apiVersion":"apps.kruise.io/v1beta1","kind":"AdvancedCronJob","spec":{"schedule":"@daily","template":{"imageListPullJobTemplate":{"spec":{"images":["a"],"later":1}}}},"status":{"type":"ImageListPullJob"}}`,
			spoke, `{"apiVersion":"apps.kruise.io/v1alpha1","kind":"AdvancedCronJob","metadata":{"annotations":{"apps.kruise.io/v1beta1-advancedcronjob-template":"{\"spec\":{\"images\":[\"a\"],\"later\":1}}"}},"spec":{"schedule":"@daily","template":{}},"status":{"type":"ImageListPullJob"}}`,
		},
		{
			"up", `{"apiVersion":"apps.kruise.io/v1alpha1","kind":"AdvancedCronJob","metadata":{"annotations":{"apps.kruise.io/v1beta1-advancedcronjob-template":"{\"spec\":{\"images\":[\"a\"]}}","b":"c"}},"spec":{"paused":true,"template":{}}}`,
			hub, `{"apiVersion":"apps.kruise.io/v1beta1","kind":"AdvancedCronJob","metadata":{"annotations":{"b":"c"}},"spec":{"paused":true,"template":{"imageListPullJobTemplate":{"spec":{"images":["a"]}}}}}`,
		},
		{
			"replaced by the user", `{"apiVersion":"apps.kruise.io/v1alpha1","kind":"AdvancedCronJob","metadata":{"annotations":{"apps.kruise.io/v1beta1-advancedcronjob-template":"{}"}},"spec":{"template":{"jobTemplate":{}}}}`,
			hub, `{"apiVersion":"apps.kruise.io/v1beta1","kind":"AdvancedCronJob","metadata":{},"spec":{"template":{"jobTemplate":{}}}}`,
		},
		{
			"cannot be read", `{"apiVersion":"apps.kruise.io/v1alpha1","kind":"AdvancedCronJob","metadata":{"annotations":{"apps.kruise.io/v1beta1-advancedcronjob-template":"{"}},"spec":{"template":{}}}`,
			hub, `{"apiVersion":"apps.kruise.io/v1beta1","kind":"AdvancedCronJob","metadata":{},"spec":{"template":{}}}`,
		},
		{
			"written by somebody else", `{"apiVersion":"apps.kruise.io/v1beta1","kind":"AdvancedCronJob","metadata":{"annotations":{"apps.kruise.io/v1beta1-advancedcronjob-template":"{}"}},"spec":{"template":{"jobTemplate":{}}}}`,
			spoke, `{"apiVersion":"apps.kruise.io/v1alpha1","kind":"AdvancedCronJob","metadata":{},"spec":{"template":{"jobTemplate":{}}}}`,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := Convert([]byte(c.raw), c.version)
			require.NoError(t, err)
			assert.JSONEq(t, c.want, string(got))
		})
	}
}

func TestConvertKeepsWhatIsWritten(t *testing.T) {
	const rest = `"kind":"BroadcastJob","metadata":{"name":"b","generation":7},"spec":{"parallelism":"10%","completionPolicy":{},
		"template":{"metadata":{"creationTimestamp":null},"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":0.5}},"unknown":[1]}]}}},"status":{}}`
	got, err := Convert([]byte(`{"apiVersion":"apps.kruise.io/v1alpha1",`+rest), hub)
	require.NoError(t, err)
	assert.JSONEq(t, `{"apiVersion":"apps.kruise.io/v1beta1",`+rest, string(got))
}

func TestConvertNamesWhatItDoesNotKnow(t *testing.T) {
	for raw, want := range map[string]string{
		`[`: "decode",
		`{"apiVersion":"apps.kruise.io/v1alpha1","kind":"CloneSet"}`: `unsupported kind: "CloneSet"`,
		`{"apiVersion":"apps.kruise.io/v1","kind":"BroadcastJob"}`:   "unsupported version: v1",
	} {
		_, err := Convert([]byte(raw), hub)
		require.ErrorContains(t, err, want)
	}
}
