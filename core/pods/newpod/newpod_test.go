package newpod

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/testing/gen"
)

func TestPodsAreMadeOfTheTemplateAndTheWorkloadsOwn(t *testing.T) {
	template := gen.Template(gen.Label("app", "web"), gen.Label("who", "template"), gen.Image("main", "app:1"), gen.ReadinessGate(contract.KruisePodReady))
	template.Annotations = map[string]string{"note": "x"}
	template.Finalizers = []string{"example.com/hold"}
	before := template.DeepCopy()
	owner := metav1.OwnerReference{Kind: "CloneSet", Name: "web", UID: "uid"}
	pod := FromTemplate(&template, Options{
		Name: "web-1", GenerateName: "web-", Namespace: "shop", Owner: owner, Labels: map[string]string{"who": "workload"},
		DefaultPullPolicy: podspec.PullAlways, Lifecycle: true, ReadinessGates: []corev1.PodConditionType{contract.InPlaceUpdateReady, contract.KruisePodReady},
		Now: time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("east", 3600)),
	})
	assert.Equal(t, metav1.ObjectMeta{
		Name: "web-1", GenerateName: "web-", Namespace: "shop", OwnerReferences: []metav1.OwnerReference{owner}, Finalizers: []string{"example.com/hold"},
		Labels:      map[string]string{"app": "web", "who": "workload", contract.LifecycleStateLabel: contract.LifecyclePreparingNormal},
		Annotations: map[string]string{"note": "x", contract.LifecycleTimestampAnnotation: "2026-01-02T02:04:05Z"},
	}, pod.ObjectMeta)
	assert.Equal(t, []corev1.PodReadinessGate{{ConditionType: contract.KruisePodReady}, {ConditionType: contract.InPlaceUpdateReady}}, pod.Spec.ReadinessGates)
	assert.Equal(t, corev1.PullAlways, pod.Spec.Containers[0].ImagePullPolicy)
	assert.Equal(t, *before, template, "the template was changed")
}

func TestPodsHaveNothingThatBelongsToAnother(t *testing.T) {
	template := gen.Template(gen.Label("app", "web"), gen.Image("main", "app:1"))
	template.Annotations = map[string]string{"note": "x"}
	for _, key := range contract.ControlLabels() {
		template.Labels[key] = "copied"
	}
	for _, key := range contract.ControlAnnotations() {
		template.Annotations[key] = "copied"
	}
	before := template.DeepCopy()
	pod := FromTemplate(&template, Options{Name: "web-1", Labels: map[string]string{contract.RevisionLabel: "web-x"}})
	assert.Equal(t, map[string]string{"app": "web", contract.RevisionLabel: "web-x"}, pod.Labels)
	assert.Equal(t, map[string]string{"note": "x"}, pod.Annotations)
	assert.Equal(t, *before, template, "the template was changed")
}

func TestSelectorsAskForNoControlLabel(t *testing.T) {
	key := contract.SpecifiedDeleteLabel
	expression := func(o metav1.LabelSelectorOperator) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: o, Values: []string{"true"}}}}
	}
	for _, s := range []*metav1.LabelSelector{
		{MatchLabels: map[string]string{"app": "web", key: "true"}}, expression(metav1.LabelSelectorOpIn), expression(metav1.LabelSelectorOpExists),
	} {
		require.ErrorContains(t, CheckSelector(s), key)
	}
	for _, s := range []*metav1.LabelSelector{
		nil, {MatchLabels: map[string]string{"app": "web"}}, expression(metav1.LabelSelectorOpNotIn), expression(metav1.LabelSelectorOpDoesNotExist),
	} {
		require.NoError(t, CheckSelector(s))
	}
}

func TestPrefixesOfNamesAreCutAsByTheServer(t *testing.T) {
	assert.Equal(t, "web-", NamePrefix("web"))
	assert.Equal(t, strings.Repeat("a", 57)+"-", NamePrefix(strings.Repeat("a", 57)))
	for _, name := range []string{strings.Repeat("a", 58), strings.Repeat("a.b-", 62) + "a"} {
		prefix := NamePrefix(name)
		assert.Len(t, prefix, 58)
		assert.Empty(t, validation.IsDNS1123Subdomain(prefix+"x2x2x"))
	}
}

func TestPodsWithoutLifecycleGetNoState(t *testing.T) {
	template := gen.Template(gen.Image("main", "app:1"))
	pod := FromTemplate(&template, Options{Name: "web-1", DefaultPullPolicy: podspec.ServerDefault})
	assert.NotContains(t, pod.Labels, contract.LifecycleStateLabel)
	assert.NotContains(t, pod.Annotations, contract.LifecycleTimestampAnnotation)
	assert.Empty(t, pod.Spec.Containers[0].ImagePullPolicy)
}

func TestClaimsComeFirstAmongVolumesAndReplaceNamesakes(t *testing.T) {
	pod := gen.Pod("web-1")
	pod.Spec.Volumes = []corev1.Volume{{Name: "data"}, {Name: "config"}}
	MountClaims(pod, Mount{"data", "data-web-1"}, Mount{"log", "log-web-1"})
	var names, claims []string
	for _, v := range pod.Spec.Volumes {
		names = append(names, v.Name)
		if v.PersistentVolumeClaim != nil {
			claims = append(claims, v.PersistentVolumeClaim.ClaimName)
		}
	}
	assert.Equal(t, []string{"data", "log", "config"}, names)
	assert.Equal(t, []string{"data-web-1", "log-web-1"}, claims)
}

func TestLaterLabelsOfClaimsWin(t *testing.T) {
	template := gen.Claim("data", "1Gi")
	template.Labels = map[string]string{"a": "template", "b": "template", "c": "template"}
	claim := ClaimFromTemplate(&template, ClaimOptions{
		Name: "data-web-1", Namespace: "shop",
		Labels: []map[string]string{{"b": "first", "c": "first"}, {"c": "second"}},
	})
	assert.Equal(t, map[string]string{"a": "template", "b": "first", "c": "second"}, claim.Labels)
	assert.Equal(t, "data-web-1", claim.Name)
	assert.Equal(t, template.Spec, claim.Spec)
	assert.Empty(t, claim.OwnerReferences)
}

// What a template mounts and nothing declares any more came from a claim template, unless a webhook adds it to the
// pods of the present template as well.
func TestFormerVolumesAreThoseOfRemovedClaimTemplates(t *testing.T) {
	mounting := func(names ...string) *corev1.PodSpec {
		spec := &corev1.PodSpec{Volumes: []corev1.Volume{{Name: "config"}}, Containers: []corev1.Container{{}}}
		for _, name := range names {
			spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: name})
		}
		return spec
	}
	claims := []corev1.PersistentVolumeClaim{gen.Claim("data", "1Gi")}
	of := mounting("config", "data", "injected", "log")
	assert.Equal(t, []string{"log"}, FormerVolumes(of, mounting("config", "data", "injected"), claims))
	assert.Equal(t, []string{"injected", "log"}, FormerVolumes(of, mounting("data"), claims))
	assert.Empty(t, FormerVolumes(of, of, claims), "the present template")
	assert.Empty(t, FormerVolumes(mounting("data"), of, claims))
}
