package statefulset_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/statefulset/internal/statefulset"
	"github.com/flotilla-project/flotilla/statefulset/internal/statefulset/plan"
)

// cachedPods is how the operator caches pods.
func cachedPods(t *testing.T, namespace string) ctrlcache.ByObject {
	t.Helper()
	for kind, settings := range statefulset.Workload(plan.FeatureGates{}).CacheOptions(namespace).ByObject {
		if _, ok := kind.(*corev1.Pod); ok {
			return settings
		}
	}
	require.Fail(t, "no pods")
	return ctrlcache.ByObject{}
}

func controlledBy(apiVersion string) gen.PodOption {
	return gen.Change(func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: "also", UID: "also"},
			{APIVersion: apiVersion, Kind: "StatefulSet", Name: "web", UID: "set", Controller: new(true)},
		}
	})
}

func TestOfPodsOfOthersTheNameAndTheirControllerAreCached(t *testing.T) {
	trim := cachedPods(t, "").Transform
	cases := []struct {
		name   string
		option gen.PodOption
		whole  bool
	}{
		{"ours", controlledBy("apps.kruise.io/v1alpha1"), true},
		{"left behind", gen.Label("a", "b"), true},
		{"of a built-in set", controlledBy("apps/v1"), false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			pod := gen.Pod("web-0", gen.Image("main", "app:1"), gen.Label(appsv1.StatefulSetPodNameLabel, "web-0"), c.option)
			want := metav1.GetControllerOf(pod)
			got, err := trim(pod.DeepCopy())
			require.NoError(t, err)
			cached := got.(*corev1.Pod)
			assert.Equal(t, c.whole, len(cached.Spec.Containers) > 0)
			assert.Equal(t, pod.UID, cached.UID)
			assert.Equal(t, pod.ResourceVersion, cached.ResourceVersion)
			assert.Equal(t, want, metav1.GetControllerOf(cached), "who is owned does not seem left behind")
		})
	}
	missed := cache.DeletedFinalStateUnknown{Key: "shop/web-0"}
	got, err := trim(missed)
	require.NoError(t, err)
	assert.Equal(t, missed, got)
}

func TestAnOperatorOfOneNamespaceCachesThatOneOnly(t *testing.T) {
	assert.Equal(t, "metadata.namespace=shop", cachedPods(t, "shop").Field.String())
	assert.Nil(t, cachedPods(t, "").Field)
}
