package daemonset_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemonset/internal/daemonset/plan"
)

// With the feature gate and the kind, one job for each new image and revision pulls it ahead, though pods are recreated.
func TestImagesArePulledAheadOncePerRevision(t *testing.T) {
	const nodes = 5
	env.ServePullJobs(t)
	givenMoreNodes(t, nodes)
	set := newSet(env.Namespace(t), func(s *v1beta1.DaemonSet) {
		s.Spec.Template.Spec.NodeSelector = map[string]string{"example.com/among-5": "true"}
		s.Annotations = map[string]string{contract.ImagePreDownloadParallelismAnnotation: "2"}
	})
	startController(t, env, set.Namespace, func(g *plan.FeatureGates) { g.PreDownload = true })
	c := env.Client(t)
	audit := env.Audit(t)
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set, nodes, nodes)
	assert.Empty(t, jobs(t, c, set), "a first deployment has nothing to pull ahead of")
	testenv.Edit(t, c, set, func(s *v1beta1.DaemonSet) { changed(image("app:2"), keep(4))(s) })
	settles(t, c, set, nodes, 1)
	await.Until(t, func(collect *assert.CollectT) {
		revision := &appsv1.ControllerRevision{}
		require.NoError(collect, c.Get(t.Context(), client.ObjectKey{Namespace: set.Namespace, Name: "web-" + set.Status.UpdateRevision}, revision))
		assert.Equal(collect, "true", revision.Labels[contract.ImagePreDownloadCreatedLabel])
	})
	made := jobs(t, c, set)
	require.Len(t, made, 1)
	assert.Equal(t, "web-"+set.Status.UpdateRevision+"-main", made[0].GetName())
	assert.True(t, metav1.IsControlledBy(&made[0], set))

	testenv.Edit(t, c, set, keep(0))
	settles(t, c, set, nodes, nodes)
	await.Until(t, func(collect *assert.CollectT) { assert.Empty(collect, jobs(t, c, set)) })
	writes := audit.Writes(t, userAgent)
	assert.Equal(t, 1, writes["create imagepulljobs"])
	assert.Equal(t, 1, writes["delete imagepulljobs"])
}

func jobs(t *testing.T, c client.Client, set *v1beta1.DaemonSet) []unstructured.Unstructured {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(contract.ImagePullJobGVK("v1beta1"))
	require.NoError(t, c.List(t.Context(), list, client.InNamespace(set.Namespace)))
	return list.Items
}
