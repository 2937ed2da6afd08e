package setup

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
	"github.com/flotilla-project/flotilla/core/testing/testenv/operators"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// Where one kind is served its controller works, and another one begins when its kind is served, without a restart.
func TestEachKindStandsAlone(t *testing.T) {
	env.Need(t)
	var others envtest.CRDInstallOptions
	for _, name := range []string{"advancedcronjobs", "imagepulljobs", "imagelistpulljobs"} {
		others.Paths = append(others.Paths, filepath.Join("..", "config", "crd", name+".yaml"))
	}
	require.NoError(t, envtest.UninstallCRDs(env.Config, others))
	scheme := testenv.Scheme(v1beta1.AddToScheme, apiextensionsv1.AddToScheme)
	c, err := client.New(env.Config, client.Options{Scheme: scheme})
	require.NoError(t, err)
	await.Until(t, func(collect *assert.CollectT) {
		for _, name := range []string{cronCRD, pullCRD, listCRD} {
			err := c.Get(t.Context(), client.ObjectKey{Name: name}, &apiextensionsv1.CustomResourceDefinition{})
			assert.True(collect, apierrors.IsNotFound(err), name)
		}
	})
	operators.Start(t, &env, Operator())
	namespace := env.Namespace(t)
	job := &v1beta1.BroadcastJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "job"}}
	job.Spec.Template.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, NodeSelector: map[string]string{"a": "b"},
		Containers: []corev1.Container{{Name: "main", Image: "busybox"}},
	}
	require.NoError(t, c.Create(t.Context(), job))
	await.Until(t, func(collect *assert.CollectT) {
		require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(job), job))
		assert.Equal(collect, v1beta1.PhaseRunning, job.Status.Phase)
	})

	env.InstallCRDs(t, others)
	list := &v1beta1.ImageListPullJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "list"}}
	list.Spec.Images = []string{"nginx"}
	require.NoError(t, c.Create(t.Context(), list))
	await.Until(t, func(collect *assert.CollectT) {
		require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(list), list))
		assert.Equal(collect, list.Generation, list.Status.ObservedGeneration)
		var pulls v1beta1.ImagePullJobList
		require.NoError(collect, c.List(t.Context(), &pulls, client.InNamespace(namespace)))
		require.Len(collect, pulls.Items, 1)
		assert.Equal(collect, pulls.Items[0].Generation, pulls.Items[0].Status.ObservedGeneration)
	})
}
