package subsets

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

// Any client that may write pods can write the annotation of a subset, and the patch of a subset is any JSON.
func FuzzInject(f *testing.F) {
	f.Add(`{"name":"web","subset":"a","uid":"u"}`, []byte(`{"metadata":{"labels":{"zone":"a"}},"spec":{"priorityClassName":"low"}}`), "web-3", 2, 5)
	f.Add(`{"NAME":1}`, []byte(`{"$patch":"delete"}`), "web-", -1, 9223372036854775807)
	f.Add(`null`, []byte(`{"spec":{"containers":[{"$patch":"replace"},{"name":"main","env":[{"name":"A"}]}]}}`), "9", 0, 0)
	f.Add(`{"name":"web","subset":"a"}`, []byte(`{"metadata":{"$deleteFromPrimitiveList/finalizers":["a"],"$retainKeys":["name"]}}`), "web--9223372036854775808", 3, 4)
	f.Fuzz(func(t *testing.T, text string, patch []byte, name string, first, last int) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"app": "web"}, Finalizers: []string{"a"}, Annotations: map[string]string{v1beta1.MatchedAnnotation: text},
		}}
		pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "app:1"}}
		MatchOf(pod)
		EstrangedByPatch(patch, pod.Labels, []string{"app"})
		match := v1beta1.Match{Name: "web", Subset: "a"}
		subset := &v1beta1.WorkloadSpreadSubset{Name: "a", Patch: runtime.RawExtension{Raw: patch}}
		HasLabels(&v1beta1.WorkloadSpread{Spec: v1beta1.WorkloadSpreadSpec{Subsets: []v1beta1.WorkloadSpreadSubset{*subset}}})
		if Inject(pod, subset, match, func() []string { return []string{"app"} }) == nil {
			found, ok := MatchOf(pod)
			assert.True(t, ok)
			assert.Equal(t, match, found)
			assert.Equal(t, "web", pod.Labels["app"])
			assert.Equal(t, name, pod.Name)
		}
		if rank, ok := (Ordinals{Reserved: []Range{{first, last}, {last, last}}}).Rank(name); ok {
			assert.GreaterOrEqual(t, rank, 0)
		}
	})
}
