package simulate_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
)

type body = map[string]any

func bare(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "app:v1"}}},
	}
}

func create(t *testing.T, w *simulate.World, o action.Object) action.Object {
	t.Helper()
	made, err := w.Create(cluster.OperatorActor, o)
	require.NoError(t, err)
	return made
}

func latest(w *simulate.World, name string) *corev1.Pod {
	return cluster.Get[*corev1.Pod](w.View(nil), namespace, name)
}

func owned(name string) *corev1.Pod {
	o := bare(name)
	o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "set", UID: "set", Controller: new(true)}}
	return o
}
