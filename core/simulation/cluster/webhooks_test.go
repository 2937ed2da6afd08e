package cluster_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/nodes"
)

func TestAMutationComesBeforeTheRulesAndAdmission(t *testing.T) {
	admitted := map[string]string{}
	w := nodes.New(cluster.Options{
		Mutate: func(w *cluster.World, e cluster.Event) error {
			assert.Equal(t, w.Now(), e.Time)
			assert.Equal(t, cluster.Added, e.Type)
			pod := e.Object.(*corev1.Pod)
			switch pod.Name {
			case "refused":
				return errors.New("no more pods")
			case "bad":
				pod.Spec.Containers = nil
			}
			pod.Labels["by"] = e.Actor
			return nil
		},
		Admission: func(_ *cluster.World, e cluster.Event) error {
			admitted[e.Object.GetName()] = e.Object.GetLabels()["by"]
			return nil
		},
	})
	sent := bare("web")
	stored := create(t, w, sent)
	assert.Equal(t, cluster.OperatorActor, stored.GetLabels()["by"])
	assert.NotContains(t, sent.Labels, "by", "what was sent stays as it is")

	_, err := w.Create(cluster.OperatorActor, bare("refused"))
	assert.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, "no more pods")
	_, err = w.Create(cluster.OperatorActor, bare("bad"))
	assert.True(t, apierrors.IsInvalid(err), "%v", err)
	assert.Equal(t, map[string]string{"web": cluster.OperatorActor}, admitted)
}

func TestAMutationSeesCreationsAlone(t *testing.T) {
	var seen []string
	w := nodes.New(cluster.Options{Mutate: func(_ *cluster.World, e cluster.Event) error {
		if e.DryRun {
			seen = append(seen, "dry run")
			return nil
		}
		seen = append(seen, e.Kind+" "+e.Object.GetName())
		return nil
	}}, newSet(1, "app:1"))
	pod := create(t, w, bare("web"))
	require.NoError(t, cluster.Change(w, cluster.UserActor, "", pod.(*corev1.Pod), func(pod *corev1.Pod) { pod.Labels["a"] = "b" }))
	require.NoError(t, w.DryRun(func() (action.Object, error) { return w.Create(cluster.UserActor, bare("other")) }))
	require.NoError(t, w.Delete(cluster.UserActor, bare("web")))
	assert.Equal(t, []string{"Pod web", "dry run"}, seen)
}

func TestDeniedIsTheAnswerOfAServer(t *testing.T) {
	require.NoError(t, cluster.Denied("pods.example.com", nil))
	for name, c := range map[string]struct {
		err  error
		is   func(error) bool
		text string
	}{
		"a status": {apierrors.NewBadRequest("too long"), apierrors.IsBadRequest, "too long"},
		"an error": {errors.New("broken"), func(err error) bool { return !apierrors.IsBadRequest(err) }, "broken"},
	} {
		t.Run(name, func(t *testing.T) {
			err := cluster.Denied("pods.example.com", c.err)
			require.EqualError(t, err, `admission webhook "pods.example.com" denied the request: `+c.text)
			assert.True(t, c.is(err))
		})
	}
}
