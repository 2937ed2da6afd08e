package pulljobs

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	clientevents "k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/controllers/events"
	"github.com/flotilla-project/flotilla/core/controllers/execute"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
	"github.com/flotilla-project/flotilla/core/testing/testenv/faults"
	"github.com/flotilla-project/flotilla/core/workloads/predownload"
)

var env testenv.Environment

func TestMain(m *testing.M) { env.Run(m, testenv.Options{}) }

// unrecorded is told of writes and keeps nothing.
type unrecorded struct{}

func (unrecorded) Created(types.NamespacedName, client.Object)      {}
func (unrecorded) Written(types.NamespacedName, client.Object)      {}
func (unrecorded) Deleted(types.NamespacedName, client.Object)      {}
func (unrecorded) MaybeCreated(types.NamespacedName, client.Object) {}
func (unrecorded) MaybeWritten(types.NamespacedName, client.Object) {}

func givenJobs(t *testing.T) (*Jobs, *clocktesting.FakePassiveClock) {
	t.Helper()
	return givenJobsIn(t, env)
}

func givenJobsIn(t *testing.T, env testenv.Environment) (*Jobs, *clocktesting.FakePassiveClock) {
	t.Helper()
	env.Need(t)
	mgr := env.Manager(t)
	d, err := discovery.NewDiscoveryClientForConfig(env.Config)
	require.NoError(t, err)
	executor, err := execute.New(execute.Options{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Recorder: unrecorded{}, Metrics: prometheus.NewRegistry(), Controller: "test",
	})
	require.NoError(t, err)
	clock := clocktesting.NewFakePassiveClock(time.Now())
	jobs := New(Options{
		Discovery: d, Cache: mgr.GetCache(), Executor: executor, Events: events.NewRecorder(clientevents.NewFakeRecorder(100), mgr.GetScheme(), clock), Clock: clock,
	})
	env.Start(t, mgr)
	return jobs, clock
}

func givenOwner(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: env.Namespace(t)}}
	require.NoError(t, env.Client(t).Create(t.Context(), owner))
	return owner
}

// The kind may come and go while the operator runs. It is looked for once a minute at most, and once
// found only when a write fails.
func TestTheKindMayComeAndGo(t *testing.T) {
	jobs, clock := givenJobs(t)
	says := func(want string) {
		t.Helper()
		version, problem := jobs.kind.look(t.Context(), true)
		assert.Equal(t, want, version)
		assert.Empty(t, problem)
	}
	aMinute := func() { clock.SetTime(clock.Now().Add(time.Minute)) }
	says("")
	for _, when := range []string{"installed", "installed again"} {
		t.Run(when, func(t *testing.T) {
			env.ServePullJobs(t)
			says("")
			aMinute()
			says("v1beta1")
		})
		aMinute()
		says("v1beta1")
		jobs.kind.requestRecheck()
		says("")
	}
}

// A cache that takes long to fill is used as soon as it is filled.
func TestCachesMayFillSlowly(t *testing.T) {
	env.ServePullJobs(t)
	filled := make(chan struct{})
	jobs, _ := givenJobsIn(t, faults.Over(env, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Path, "/"+contract.ImagePullJobResource) {
			<-filled
		}
		return next.RoundTrip(r)
	}))
	_, problem := jobs.kind.look(t.Context(), true)
	assert.Equal(t, "filling the cache of image pull jobs failed", problem)
	close(filled)
	await.Until(t, func(collect *assert.CollectT) {
		version, problem := jobs.kind.look(t.Context(), true)
		assert.Equal(collect, "v1beta1", version)
		assert.Empty(collect, problem)
	})
}

func job(t *testing.T, owner *corev1.ConfigMap, name, image string) action.Action {
	t.Helper()
	ref := *metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	o, err := contract.NewImagePullJob("v1beta1", metav1.ObjectMeta{
		Name: name, Namespace: owner.Namespace, OwnerReferences: []metav1.OwnerReference{ref},
	}, contract.ImagePullJobSpec{Image: image})
	require.NoError(t, err)
	return action.Action{Verb: action.Create, Object: o}
}

func wishing(verb action.Action) predownload.JobPlan {
	return predownload.JobPlan{Plan: action.Plan{Steps: []action.Step{{Name: "pull", Actions: []action.Action{verb}}}}}
}

// What was written is known at once, even where the cache does not show it yet.
func TestJobsAreWrittenAndFoundAgain(t *testing.T) {
	env.ServePullJobs(t)
	jobs, _ := givenJobs(t)
	owner := givenOwner(t)
	assert.Empty(t, jobs.Of(t.Context(), owner, "web-1", true).Owned)
	assert.Zero(t, jobs.Run(t.Context(), owner, "web-1", wishing(job(t, owner, "web-1-main", "app:1"))))
	var known predownload.Jobs
	await.Until(t, func(check *assert.CollectT) {
		known = jobs.Of(t.Context(), owner, "web-1", true)
		assert.Len(check, known.Owned, 1)
	})
	assert.Equal(t, "v1beta1", known.Version)
	assert.Empty(t, known.Problem)

	assert.Zero(t, jobs.Run(t.Context(), owner, "web-1", wishing(action.Action{Verb: action.Delete, Object: known.Owned[0].PartialObjectMetadata})))
	assert.Empty(t, jobs.Of(t.Context(), owner, "web-1", false).Owned, "deleted jobs are not deleted again")
}

// How a job ended is read, and a round is remembered of its revision.
func TestEndsAndRoundsAreKnown(t *testing.T) {
	env.ServePullJobs(t)
	jobs, clock := givenJobs(t)
	owner := givenOwner(t)
	made := job(t, owner, "web-1-main", "app:1")
	wish := wishing(made)
	wish.Round = &predownload.Round{Began: clock.Now(), Nodes: map[string]bool{"n1": true}}
	jobs.Of(t.Context(), owner, "web-1", true)
	assert.Zero(t, jobs.Run(t.Context(), owner, "web-1", wish))
	assert.Equal(t, *wish.Round, jobs.Of(t.Context(), owner, "web-1", true).Round)
	assert.Zero(t, jobs.Of(t.Context(), owner, "web-2", true).Round)

	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(contract.ImagePullJobGVK("v1beta1"))
	require.NoError(t, env.Client(t).Get(t.Context(), client.ObjectKeyFromObject(made.Object), stored))
	stored.Object["status"] = map[string]any{"desired": int64(3), "succeeded": int64(1), "completionTime": "2026-01-02T12:00:00Z"}
	require.NoError(t, env.Client(t).Status().Update(t.Context(), stored))
	await.Until(t, func(check *assert.CollectT) {
		known := jobs.Of(t.Context(), owner, "web-1", true)
		if assert.Len(check, known.Owned, 1) {
			assert.Equal(check, []any{"app:1", true, int64(2)}, []any{known.Owned[0].Image, known.Owned[0].Ended, known.Owned[0].Lacking})
		}
	})

	refused := wishing(job(t, owner, "web-1-main-2", "app:refused"))
	refused.Round = &predownload.Round{Failures: 5}
	assert.NotZero(t, jobs.Run(t.Context(), owner, "web-1", refused))
	assert.Zero(t, jobs.Of(t.Context(), owner, "web-1", true).Round.Failures, "it has not begun")
}

// A refused job is tried again after a while, and for another revision at once.
func TestRefusedJobsAreTriedAgain(t *testing.T) {
	env.ServePullJobs(t)
	jobs, clock := givenJobs(t)
	owner := givenOwner(t)
	jobs.Of(t.Context(), owner, "web-1", true)
	again := jobs.Run(t.Context(), owner, "web-1", wishing(job(t, owner, "web-1-main", "app:refused")))
	assert.Equal(t, retryInterval, again)
	assert.Equal(t, clock.Now().Add(retryInterval), jobs.Of(t.Context(), owner, "web-1", true).RetryAt)
	assert.Zero(t, jobs.Of(t.Context(), owner, "web-2", true).RetryAt)
	jobs.Forget(client.ObjectKeyFromObject(owner))
	assert.Zero(t, jobs.Of(t.Context(), owner, "web-1", true).RetryAt)
}

func TestUsersAreToldOncePerRevision(t *testing.T) {
	jobs, _ := givenJobs(t)
	owner := givenOwner(t)
	jobs.Run(t.Context(), owner, "web-1", predownload.JobPlan{ReportsProblem: true})
	assert.True(t, jobs.Of(t.Context(), owner, "web-1", true).ProblemReported)
	assert.False(t, jobs.Of(t.Context(), owner, "web-2", true).ProblemReported)
}
