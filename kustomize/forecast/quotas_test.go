package forecast_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"

	"github.com/flotilla-project/flotilla/kustomize/forecast"
	"github.com/flotilla-project/flotilla/kustomize/progress"
	"github.com/flotilla-project/flotilla/kustomize/test/scenes"
)

// full is a quota that is used up by the ten pods of the tests.
func full(spec corev1.ResourceQuotaSpec) *corev1.ResourceQuota {
	ten := corev1.ResourceList{corev1.ResourcePods: *quantity("10")}
	return &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "full", Namespace: "default"},
		Spec:       spec, Status: corev1.ResourceQuotaStatus{Hard: ten, Used: ten},
	}
}

func TestQuotasCountThePodsOfTheirScopes(t *testing.T) {
	scopes := func(all ...corev1.ResourceQuotaScope) corev1.ResourceQuotaSpec {
		return corev1.ResourceQuotaSpec{Scopes: all}
	}
	class := func(operator corev1.ScopeSelectorOperator, values ...string) corev1.ResourceQuotaSpec {
		return corev1.ResourceQuotaSpec{ScopeSelector: &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
			{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: operator, Values: values},
		}}}
	}
	bare := func(pod *corev1.PodSpec) { pod.Containers[0].Resources = corev1.ResourceRequirements{} }
	limited := func(pod *corev1.PodSpec) {
		pod.Containers[0].Resources = corev1.ResourceRequirements{Limits: corev1.ResourceList{"memory": *quantity("1Gi")}}
	}
	sharedOut := func(pod *corev1.PodSpec) {
		bare(pod)
		pod.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": *quantity("1")}}
	}
	brief := func(pod *corev1.PodSpec) { pod.ActiveDeadlineSeconds = new(int64(3600)) }
	high := func(pod *corev1.PodSpec) { pod.PriorityClassName = "high" }
	abroad := func(pod *corev1.PodSpec) {
		pod.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
				Weight: 1, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: "zone", Namespaces: []string{"other"}},
			}},
		}}
	}
	at := func(*corev1.PodSpec) {}
	for name, c := range map[string]struct {
		quota corev1.ResourceQuotaSpec
		pod   func(*corev1.PodSpec)
		holds bool // whether the quota counts the pods
	}{
		"no scopes":                             {scopes(), at, true},
		"Terminating, without a deadline":       {scopes(corev1.ResourceQuotaScopeTerminating), at, false},
		"Terminating, with one":                 {scopes(corev1.ResourceQuotaScopeTerminating), brief, true},
		"NotTerminating, without a deadline":    {scopes(corev1.ResourceQuotaScopeNotTerminating), at, true},
		"NotTerminating, with one":              {scopes(corev1.ResourceQuotaScopeNotTerminating), brief, false},
		"BestEffort, with a request":            {scopes(corev1.ResourceQuotaScopeBestEffort), at, false},
		"BestEffort, with a limit":              {scopes(corev1.ResourceQuotaScopeBestEffort), limited, false},
		"BestEffort, with a request of the pod": {scopes(corev1.ResourceQuotaScopeBestEffort), sharedOut, false},
		"BestEffort, without":                   {scopes(corev1.ResourceQuotaScopeBestEffort), bare, true},
		"NotBestEffort, with a request":         {scopes(corev1.ResourceQuotaScopeNotBestEffort), at, true},
		"NotBestEffort, without":                {scopes(corev1.ResourceQuotaScopeNotBestEffort), bare, false},
		"affinity in the own namespace":         {scopes(corev1.ResourceQuotaScopeCrossNamespacePodAffinity), at, false},
		"affinity to another namespace":         {scopes(corev1.ResourceQuotaScopeCrossNamespacePodAffinity), abroad, true},
		"PriorityClass, without one":            {scopes(corev1.ResourceQuotaScopePriorityClass), at, false},
		"PriorityClass, with one":               {scopes(corev1.ResourceQuotaScopePriorityClass), high, true},
		"class in values":                       {class(corev1.ScopeSelectorOpIn, "low", "high"), high, true},
		"class in other values":                 {class(corev1.ScopeSelectorOpIn, "low"), high, false},
		"no class in values":                    {class(corev1.ScopeSelectorOpIn, "low"), at, false},
		"class not in values":                   {class(corev1.ScopeSelectorOpNotIn, "low"), high, true},
		"class not in values, and it is":        {class(corev1.ScopeSelectorOpNotIn, "high"), high, false},
		"no class, not in values":               {class(corev1.ScopeSelectorOpNotIn, "high"), at, true},
		"a class exists":                        {class(corev1.ScopeSelectorOpExists), high, true},
		"no class exists":                       {class(corev1.ScopeSelectorOpExists), at, false},
		"a class must not exist":                {class(corev1.ScopeSelectorOpDoesNotExist), high, false},
		"a class must not exist, and none does": {class(corev1.ScopeSelectorOpDoesNotExist), at, true},
		"of two scopes one does not fit":        {scopes(corev1.ResourceQuotaScopeNotTerminating, corev1.ResourceQuotaScopeBestEffort), at, false},
		"both scopes fit":                       {scopes(corev1.ResourceQuotaScopeNotTerminating, corev1.ResourceQuotaScopeNotBestEffort), at, true},
		"classes of volumes are of no pod":      {scopes(corev1.ResourceQuotaScopeVolumeAttributesClass), at, false},
		"the scopes fit, and the selector does not": {corev1.ResourceQuotaSpec{
			Scopes: scopes(corev1.ResourceQuotaScopeNotTerminating).Scopes, ScopeSelector: class(corev1.ScopeSelectorOpIn, "low").ScopeSelector,
		}, high, false},
	} {
		t.Run(name, func(t *testing.T) {
			scene := scenes.Settled(t, scenes.Web)
			for i, pod := range scene.Pods {
				scene.Pods[i] = pod.DeepCopy()
				c.pod(&scene.Pods[i].Spec)
			}
			scene.Set = edited(t, scene, func(s *v1beta1.CloneSet) { c.pod(&s.Spec.Template.Spec) })
			scene.Quotas = []*corev1.ResourceQuota{full(c.quota)}
			f, err := forecast.Play(t.Context(), scene, forecast.Edit{
				To: edited(t, scene, func(s *v1beta1.CloneSet) {
					s.Spec.Replicas = new(int32(12))
					s.Spec.UpdateStrategy.RollingUpdate.Paused = true
				}),
			})
			require.NoError(t, err)
			if c.holds {
				assert.Zero(t, f.Added, f.Message)
			} else {
				assert.Equal(t, 2, f.Added, f.Message)
			}
		})
	}
}

// Pods that are recreated give back the share of the quota that they had.
func TestARolloutFitsInAFullQuota(t *testing.T) {
	scene := scenes.Settled(t, scenes.Web)
	scene.Quotas = []*corev1.ResourceQuota{full(corev1.ResourceQuotaSpec{Scopes: []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeNotBestEffort}})}
	f, err := forecast.Play(t.Context(), scene, forecast.Edit{To: edited(t, scene, func(s *v1beta1.CloneSet) {
		scenes.NewImage(s)
		s.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = v1beta1.ReCreate
	})})
	require.NoError(t, err)
	assert.Equal(t, []any{progress.Complete, 10}, []any{f.Phase, f.Recreated}, f.Message)
}

func TestQuotasCountClaims(t *testing.T) {
	for name, c := range map[string]struct {
		resource, hard, want string
	}{
		"number":            {"persistentvolumeclaims", "2", "used: persistentvolumeclaims=2, limited: persistentvolumeclaims=2"},
		"objects":           {"count/persistentvolumeclaims", "2", "count/persistentvolumeclaims=2"},
		"storage":           {"requests.storage", "2560Mi", "requests.storage=2Gi"},
		"number of a class": {"fast.storageclass.storage.k8s.io/persistentvolumeclaims", "2", "persistentvolumeclaims=2"},
		"storage of a class": {
			"fast.storageclass.storage.k8s.io/requests.storage", "2560Mi", "requests.storage=2Gi",
		},
		"storage of another class": {"slow.storageclass.storage.k8s.io/requests.storage", "0", ""},
	} {
		t.Run(name, func(t *testing.T) {
			scene := database(t, "a")
			quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "storage", Namespace: "default"}}
			quota.Status.Hard = corev1.ResourceList{corev1.ResourceName(c.resource): *quantity(c.hard)}
			scene.Quotas = []*corev1.ResourceQuota{quota}
			f, err := forecast.Play(t.Context(), scene, forecast.Edit{})
			require.NoError(t, err)
			if c.want == "" {
				assert.Equal(t, progress.Complete, f.Phase, f.Message)
				return
			}
			assert.Equal(t, []any{progress.Failed, 2}, []any{f.Phase, f.Added}, f.Message)
			assert.Contains(t, f.Message, "exceeded quota: storage, ")
			assert.Contains(t, f.Message, c.want)
		})
	}
}
