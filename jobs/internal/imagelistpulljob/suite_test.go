package imagelistpulljob_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/imagelistpulljob"
)

const userAgent = "jobs-manager/imagelistpulljob"

var env testenv.Environment

func TestMain(m *testing.M) {
	env.Run(m, testenv.Options{
		CRDs:   []string{"../../config/crd/imagelistpulljobs.yaml", "../../config/crd/imagepulljobs.yaml"},
		Scheme: testenv.Scheme(v1beta1.AddToScheme),
	})
}

// givenController runs the controller of a namespace until the end of the test. The environment is that of the tests, or
// one that reaches it in another way.
func givenController(t *testing.T, env testenv.Environment, namespace string) client.Client {
	t.Helper()
	env.Need(t)
	return env.Control(t, fastclient.CacheOptions(namespace, nil), func(mgr manager.Manager, reader fastclient.Options) error {
		if err := fastclient.IndexOwners(t.Context(), mgr.GetFieldIndexer(), &v1beta1.ImagePullJob{}); err != nil {
			return err
		}
		return imagelistpulljob.SetUp(t.Context(), mgr, pass.Settings{Reader: reader, UserAgent: userAgent, Namespace: namespace})
	})
}

// givenList makes a job for two images.
func givenList(t *testing.T, c client.Client, namespace string, changes ...func(*v1beta1.ImageListPullJob)) *v1beta1.ImageListPullJob {
	t.Helper()
	list := &v1beta1.ImageListPullJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "list"}}
	list.Spec.Images = []string{"nginx", "redis"}
	for _, change := range changes {
		change(list)
	}
	require.NoError(t, c.Create(t.Context(), list))
	return list
}

// eventually reads the job until the assertions about it hold.
func eventually(t *testing.T, c client.Client, list *v1beta1.ImageListPullJob, check func(*assert.CollectT, *v1beta1.ImageListPullJob)) {
	t.Helper()
	await.Until(t, func(collect *assert.CollectT) {
		var now v1beta1.ImageListPullJob
		require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(list), &now))
		check(collect, &now)
	})
}

// listed returns the jobs of the list, sorted by image.
func listed(ctx context.Context, t require.TestingT, c client.Client, list *v1beta1.ImageListPullJob) []v1beta1.ImagePullJob {
	var all v1beta1.ImagePullJobList
	require.NoError(t, c.List(ctx, &all, client.InNamespace(list.Namespace)))
	found := slices.DeleteFunc(all.Items, func(o v1beta1.ImagePullJob) bool { return !metav1.IsControlledBy(&o, list) })
	slices.SortFunc(found, func(a, b v1beta1.ImagePullJob) int { return strings.Compare(a.Spec.Image, b.Spec.Image) })
	return found
}

func imagesOf(children []v1beta1.ImagePullJob) (images []string) {
	for i := range children {
		images = append(images, children[i].Spec.Image)
	}
	return images
}

// children waits for jobs of these images, sorted, and of no others.
func children(t *testing.T, c client.Client, list *v1beta1.ImageListPullJob, images ...string) (found []v1beta1.ImagePullJob) {
	t.Helper()
	await.Until(t, func(collect *assert.CollectT) {
		found = listed(t.Context(), collect, c, list)
		assert.Equal(collect, images, imagesOf(found))
	})
	return found
}

// report has the controller of ImagePullJobs tell about two nodes.
func report(t *testing.T, c client.Client, child *v1beta1.ImagePullJob, active, succeeded, failed int32) {
	t.Helper()
	before, now := client.MergeFrom(child.DeepCopy()), metav1.Now()
	child.Status = v1beta1.ImagePullJobStatus{StartTime: &now, Desired: 2, Active: active, Succeeded: succeeded, Failed: failed}
	if succeeded+failed == child.Status.Desired {
		child.Status.CompletionTime = &now
	}
	require.NoError(t, c.Status().Patch(t.Context(), child, before))
}
