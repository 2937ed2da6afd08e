package imagelistpulljob_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
	"github.com/flotilla-project/flotilla/core/testing/testenv/faults"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// A server that refuses to make, delete and label jobs hears little of the controller, however much happens to the
// lists, and what was wanted happens soon after.
func TestARefusedControllerIsQuiet(t *testing.T) {
	env.Need(t)
	faults.EachRefusal(t, func(t *testing.T, f *faults.Refusing) {
		t.Helper()
		c, namespace := env.Client(t), env.Namespace(t)
		f.For, f.Of = 11*time.Second, func(r *http.Request) bool {
			return faults.IsWrite(r) && strings.Contains(r.URL.Path, "/"+namespace+"/image") && !strings.HasSuffix(r.URL.Path, "/status")
		}
		named := func(name string) func(*v1beta1.ImageListPullJob) {
			return func(list *v1beta1.ImageListPullJob) { list.Name, list.Spec.Images = name, []string{"nginx"} }
		}
		makes, drops, expires := givenList(t, c, namespace, named("makes")), givenList(t, c, namespace, named("drops")), givenList(t, c, namespace, named("expires"))
		unwanted := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "unwanted",
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(drops, v1beta1.GroupVersion.WithKind(v1beta1.ImageListPullJobKind))},
		}}
		unwanted.Spec.Image = "redis"
		require.NoError(t, c.Create(t.Context(), unwanted))
		testenv.Edit(t, c, expires, func(list *v1beta1.ImageListPullJob) {
			list.Spec.CompletionPolicy.TTLSecondsAfterFinished = new(int32(0))
		})
		before, now := client.MergeFrom(expires.DeepCopy()), metav1.Now()
		expires.Status.CompletionTime = &now
		require.NoError(t, c.Status().Patch(t.Context(), expires, before))

		givenController(t, faults.Over(env, f.Send), namespace)
		for note := ""; !f.Over(); note += "." {
			patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"note":"`+note+`"}}}`))
			for _, list := range []*v1beta1.ImageListPullJob{makes, drops, expires} {
				require.NoError(t, client.IgnoreNotFound(c.Patch(t.Context(), list.DeepCopy(), patch)))
			}
			<-time.After(200 * time.Millisecond)
		}
		await.Until(t, func(collect *assert.CollectT) {
			assert.Equal(collect, []string{"nginx"}, imagesOf(listed(t.Context(), collect, c, makes)))
			assert.Equal(collect, []string{"nginx"}, imagesOf(listed(t.Context(), collect, c, drops)))
			assert.True(collect, apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(expires), expires)))
		})
		f.AssertQuiet(t, 1)
	})
}
