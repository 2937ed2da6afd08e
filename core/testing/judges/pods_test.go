package judges_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/judges"
)

const namespace = "default"

type body = map[string]any

func bare(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "app:v1"}}},
	}
}

func create(t *testing.T, w *judges.World, o action.Object) action.Object {
	t.Helper()
	made, err := w.Create(cluster.OperatorActor, o)
	require.NoError(t, err)
	return made
}

func latest(w *judges.World, name string) *corev1.Pod {
	return cluster.Get[*corev1.Pod](w.View(nil), namespace, name)
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func patch(t *testing.T, w *judges.World, p action.Patch) {
	t.Helper()
	_, err := w.Patch(cluster.OperatorActor, bare("web-1"), p)
	require.NoError(t, err)
}

func setImage(image string) action.Patch {
	return action.Patch{Body: body{"spec": body{"containers": []any{body{"name": "main", "image": image}}}}}
}
