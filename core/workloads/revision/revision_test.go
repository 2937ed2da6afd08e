package revision

import (
	"hash/fnv"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flotilla-project/flotilla/core/testing/gen"
)

func decimalHash(text string) string {
	var print strings.Builder
	print.WriteString("([]uint8)[")
	for i := range len(text) {
		if i > 0 {
			print.WriteByte(' ')
		}
		print.WriteString(strconv.Itoa(int(text[i])))
	}
	print.WriteByte(']')
	h := fnv.New32a()
	_, _ = h.Write([]byte(print.String()))
	return strconv.FormatUint(uint64(h.Sum32()), 10)
}

func TestDataFormat(t *testing.T) {
	user := int64(9007199254740993) // not a float64
	template := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "main", Image: "app:1", Args: []string{"a<b"}}},
		Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}},
		}}},
		SecurityContext: &corev1.PodSecurityContext{RunAsUser: &user},
	}}
	r := revisionOf(t, template, 1)
	assert.Equal(t, `{"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null},"spec":{`+
		`"containers":[{"args":["a\u003cb"],"image":"app:1","name":"main","resources":{}}],`+
		`"securityContext":{"runAsUser":9007199254740993},`+
		`"volumes":[{"ephemeral":{"volumeClaimTemplate":{"metadata":{"creationTimestamp":null},"spec":{"resources":{}}}},"name":"data"}]`+
		`}}}}`, string(r.Data.Raw))
	again, err := Template(r)
	require.NoError(t, err)
	assert.Equal(t, template, again)
}

func TestNewLeavesTheTemplateAlone(t *testing.T) {
	template := image("app:1")
	revisionOf(t, template, 1)
	assert.Equal(t, image("app:1"), template)
}

func TestNameOfALongWorkload(t *testing.T) {
	owner := web()
	owner.Name = strings.Repeat("w", 253)
	r, err := New(owner, cloneSet, image("app:1"), 1, 0)
	require.NoError(t, err)
	assert.Equal(t, strings.Repeat("w", 223)+"-"+Hash(r), r.Name)
	assert.Empty(t, validation.IsDNS1123Subdomain(r.Name))
	assert.LessOrEqual(t, len(Hash(r)), 10)
}

func TestHashIsTheEndOfTheName(t *testing.T) {
	assert.Equal(t, "abc", Hash(&appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "my-web-abc"}}))
}

func TestTemplateRefusesOtherData(t *testing.T) {
	for _, data := range []string{``, `{}`, `{"spec":{"replicas":1}}`, `[]`} {
		r := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "web-abc"}}
		r.Data.Raw = []byte(data)
		_, err := Template(r)
		require.ErrorContains(t, err, "decode revision web-abc: ", data)
	}
}

func TestClaimsHash(t *testing.T) {
	a, b := gen.Claim("a", "1Gi"), gen.Claim("b", "2Gi")
	of := func(claims ...corev1.PersistentVolumeClaim) string {
		t.Helper()
		text, err := ClaimsHash(claims)
		require.NoError(t, err)
		return text
	}
	assert.Empty(t, of())
	assert.Equal(t, of(a, b), of(b, a), "their order says nothing")
	assert.NotEqual(t, of(a), of(b))
	assert.NotEqual(t, of(a), of(gen.Claim("a", "2Gi")))
	assert.Equal(t, of(a), of(gen.Claim("a", "1024Mi")))

	labelled := gen.Claim("a", "1Gi", func(c *corev1.PersistentVolumeClaim) {
		c.Labels, c.CreationTimestamp = map[string]string{"x": "y"}, metav1.NewTime(gen.Epoch())
		c.Status.Phase = corev1.ClaimPending
	})
	assert.Equal(t, of(a), of(labelled), "only name and spec count")

	mode := corev1.PersistentVolumeFilesystem
	defaultedClaim := gen.Claim("a", "1Gi", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = &mode })
	assert.Equal(t, of(a), of(defaultedClaim), "stored claims were defaulted")
	assert.Nil(t, a.Spec.VolumeMode, "the claims were changed")
}

// The text is that of the specification, and the number is FNV-1a over its deep print, worked out
// here by hand.
func TestClaimsHashIsThatOfTheLegacySerialisation(t *testing.T) {
	text := `[{"metadata":{"name":"a","creationTimestamp":null},` +
		`"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}},"volumeMode":"Filesystem"},"status":{}}]`
	got, err := ClaimsHash([]corev1.PersistentVolumeClaim{gen.Claim("a", "1Gi")})
	require.NoError(t, err)
	assert.Equal(t, decimalHash(text), got)
}

func BenchmarkChooseUnchanged(b *testing.B) {
	template := image("app:1")
	r, err := New(web(), cloneSet, template, 1, 0)
	require.NoError(b, err)
	in := Input{Owner: web(), Kind: cloneSet, Template: template, Owned: []*appsv1.ControllerRevision{r}, Current: r.Name}
	for b.Loop() {
		if _, err := Choose(in); err != nil {
			b.Fatal(err)
		}
	}
}
