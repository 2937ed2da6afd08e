package imagepulljob_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv/faults"

	nodeimage "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// Whatever the server answers to writes of any kind, it hears little of the controller, however much happens to the
// jobs, and what was wanted happens soon after. All answers are given to one controller, each about other objects.
func TestARefusedControllerIsQuiet(t *testing.T) {
	givenNodeImages(t)
	c := env.Client(t)
	plays := map[string]*refused{}
	for name, err := range faults.Refusals() {
		plays[name] = givenRefused(t, c, err)
	}
	givenControllerOf(t, faults.Over(env, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		for _, play := range plays {
			if play.server.Of(r) {
				return play.server.Send(r, next)
			}
		}
		return next.RoundTrip(r)
	}))
	for note, over := "", false; !over; note += "." {
		over = true
		for _, play := range plays {
			play.annotate(t, c, note)
			over = over && play.server.Over()
		}
		<-time.After(200 * time.Millisecond)
	}
	for name, play := range plays {
		t.Run(name, func(t *testing.T) {
			play.assertDone(t, c)
			assert.Equal(t, 4, play.server.AssertQuiet(t, 1), "two NodeImages, a finalizer and a deletion")
		})
	}
}

// refused are a namespace with a job for each kind of write, and the nodes of these jobs.
type refused struct {
	server                    *faults.Refusing
	nodes                     []string
	pulls, protected, expires *v1beta1.ImagePullJob
}

// givenRefused makes the jobs: one that has a node pull, one that needs a secret besides, and one whose time is over.
func givenRefused(t *testing.T, c client.Client, err *apierrors.StatusError) *refused {
	t.Helper()
	r, namespace := &refused{nodes: givenNodes(t, c, 2)}, env.Namespace(t)
	r.server = &faults.Refusing{Err: err, For: 11 * time.Second, Of: func(q *http.Request) bool {
		about := strings.Contains(q.URL.Path, "/"+namespace+"/imagepulljobs/")
		for _, node := range r.nodes {
			about = about || strings.HasSuffix(q.URL.Path, "/nodeimages/"+node)
		}
		return about && faults.IsWrite(q) && !strings.HasSuffix(q.URL.Path, "/status")
	}}
	givenSecret(t, c, namespace)
	given := func(name, node string, change func(*v1beta1.ImagePullJobSpec)) *v1beta1.ImagePullJob {
		return givenJob(t, c, namespace, func(job *v1beta1.ImagePullJob) {
			job.Name, job.Spec.Selector = name, &v1beta1.ImagePullJobNodeSelector{Names: []string{node}}
			change(&job.Spec)
		})
	}
	r.pulls = given("pulls", r.nodes[0], func(*v1beta1.ImagePullJobSpec) {})
	r.protected = given("protected", r.nodes[1], func(s *v1beta1.ImagePullJobSpec) { s.PullSecrets = []string{"registry"} })
	r.expires = given("expires", "absent", func(s *v1beta1.ImagePullJobSpec) { s.CompletionPolicy.TTLSecondsAfterFinished = new(int32(0)) })
	return r
}

// annotate changes the jobs, those that are still there, in a way that concerns nobody.
func (r *refused) annotate(t *testing.T, c client.Client, note string) {
	t.Helper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"note":"`+note+`"}}}`))
	for _, job := range []*v1beta1.ImagePullJob{r.pulls, r.protected, r.expires} {
		require.NoError(t, client.IgnoreNotFound(c.Patch(t.Context(), job.DeepCopy(), patch)))
	}
}

// assertDone waits until everything has happened that was refused.
func (r *refused) assertDone(t *testing.T, c client.Client) {
	t.Helper()
	await.Until(t, func(collect *assert.CollectT) {
		for _, name := range r.nodes {
			image := &nodeimage.NodeImage{}
			require.NoError(collect, c.Get(t.Context(), client.ObjectKey{Name: name}, image))
			assert.Len(collect, image.Spec.Images["nginx"].Tags, 1, name)
		}
		protected, expires := r.protected.DeepCopy(), r.expires.DeepCopy()
		require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(protected), protected))
		assert.NotEmpty(collect, protected.Finalizers)
		assert.True(collect, apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(expires), expires)))
	})
}
