package workloadspread

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

func TestPodsAreTrimmed(t *testing.T) {
	owner := &appsv1.ReplicaSet{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"}, ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "u"}}
	pod := gen.Pod("p", gen.OwnedBy(owner), gen.Annotation("other", "x"), gen.Annotation(v1beta1.MatchedAnnotation, "m"), gen.OnNode("n"), gen.Ready(gen.Epoch()))
	trimmed, err := trimPod(pod)
	require.NoError(t, err)
	kept := trimmed.(*corev1.Pod)
	assert.Equal(t, map[string]string{v1beta1.MatchedAnnotation: "m"}, kept.Annotations)
	assert.Equal(t, pod.OwnerReferences, kept.OwnerReferences)
	assert.Equal(t, "n", kept.Spec.NodeName)
	assert.Empty(t, kept.Spec.Containers)
	again, err := trimPod(kept)
	require.NoError(t, err)
	assert.Equal(t, kept, again)

	daemon := &appsv1.DaemonSet{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"}, ObjectMeta: metav1.ObjectMeta{Name: "log", UID: "d"}}
	name, err := trimPod(gen.Pod("p", gen.OwnedBy(daemon)))
	require.NoError(t, err)
	assert.IsType(t, &metav1.PartialObjectMetadata{}, name)
	advanced := &appsv1.DaemonSet{TypeMeta: metav1.TypeMeta{APIVersion: "apps.kruise.io/v1alpha1", Kind: "DaemonSet"}, ObjectMeta: daemon.ObjectMeta}
	whole, err := trimPod(gen.Pod("p", gen.OwnedBy(advanced), gen.OnNode("n")))
	require.NoError(t, err)
	require.IsType(t, &corev1.Pod{}, whole, "the ConfigMap may allow that kind")
	assert.Equal(t, "n", whole.(*corev1.Pod).Spec.NodeName)
	bare, err := trimPod(gen.Pod("p", gen.Label("app", "web")))
	require.NoError(t, err)
	assert.Equal(t, "web", bare.(*corev1.Pod).Labels["app"])
}

func TestOwnersLeadToTheirSpread(t *testing.T) {
	o, web := newOwners(), types.NamespacedName{Name: "web"}
	o.set(web, []types.UID{"a", "b"})
	o.set(web, []types.UID{"b", "c"})
	assert.Empty(t, o.of("a"))
	assert.Equal(t, []types.NamespacedName{web}, o.of("c"))
	other := types.NamespacedName{Name: "other"}
	o.set(other, []types.UID{"c"})
	assert.Equal(t, []types.NamespacedName{web, other}, o.of("c"), "two may have the same workload")
	o.Forget(other)
	assert.Equal(t, []types.NamespacedName{web}, o.of("c"))
	o.Forget(web)
	assert.Empty(t, o.byUID)

	pod := gen.Pod("p", gen.Label("app", "web"))
	web.Namespace = pod.Namespace
	o.choose(web, labels.SelectorFromSet(labels.Set{"app": "web"}))
	o.choose(types.NamespacedName{Namespace: "other", Name: "web"}, labels.Everything())
	assert.Equal(t, []types.NamespacedName{web}, o.choosing(pod))
	assert.Empty(t, o.choosing(gen.Pod("p", gen.Label("app", "other"))))
	o.set(web, nil)
	assert.Empty(t, o.choosing(pod))
	assert.Empty(t, o.bySpread)
}
