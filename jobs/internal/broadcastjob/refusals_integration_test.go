package broadcastjob_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv/faults"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// Whatever the server answers to writes of any kind, it hears little of the controller, however much happens to the
// jobs, and what was wanted happens soon after. The answers are given side by side, each to a controller of its own.
func TestARefusedControllerIsQuiet(t *testing.T) {
	env.Need(t)
	c, node := env.Client(t), givenNodes(t, "", 1)[0]
	plays := map[string]*refused{}
	for name, err := range faults.Refusals() {
		plays[name] = givenRefused(t, c, node, err)
	}
	for name := range plays {
		plays[name].begin(t)
	}
	for note, over := "", false; !over; note += "." {
		over = true
		for name := range plays {
			for _, job := range plays[name].jobs {
				annotate(t, c, job, note)
			}
			over = over && plays[name].server.Over()
		}
		<-time.After(200 * time.Millisecond)
	}
	for name := range plays {
		t.Run(name, func(t *testing.T) {
			plays[name].assertDone(t, c, node)
			plays[name].server.AssertQuiet(t, 1)
		})
	}
}

// refused is a namespace with a job for each kind of write, which the server refuses.
type refused struct {
	namespace        string
	server           *faults.Refusing
	jobs             map[string]*v1beta1.BroadcastJob
	stopped, cleared *corev1.Pod
}

// givenRefused makes the jobs, as an earlier controller has left them.
func givenRefused(t *testing.T, c client.Client, node string, err *apierrors.StatusError) *refused {
	t.Helper()
	r := &refused{namespace: env.Namespace(t), jobs: map[string]*v1beta1.BroadcastJob{}}
	r.server = &faults.Refusing{Err: err, For: 11 * time.Second, Of: func(q *http.Request) bool {
		path, mine := strings.CutPrefix(q.URL.Path, "/apis/apps.kruise.io/v1beta1/namespaces/"+r.namespace+"/broadcastjobs/")
		mine = mine && path != "pauses/status" // two kinds of write to one object would count together
		return faults.IsWrite(q) && (mine || strings.Contains(q.URL.Path, "/"+r.namespace+"/pods"))
	}}
	given := func(name, image string, change func(*v1beta1.BroadcastJobSpec)) *v1beta1.BroadcastJob {
		r.jobs[name] = givenJob(t, c, image, func(job *v1beta1.BroadcastJob) {
			job.Namespace, job.Name = r.namespace, name
			change(&job.Spec)
		})
		return r.jobs[name]
	}
	given("makes", succeeds, func(*v1beta1.BroadcastJobSpec) {})
	pauses := given("pauses", fails, func(s *v1beta1.BroadcastJobSpec) { s.FailurePolicy.Type = v1beta1.FailPause })
	givenPod(t, c, pauses, node, func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodFailed })
	stops := given("stops", fails, func(s *v1beta1.BroadcastJobSpec) {
		s.FailurePolicy.Type, s.Template.Spec.RestartPolicy = v1beta1.FailContinue, corev1.RestartPolicyOnFailure
	})
	r.stopped = givenPod(t, c, stops, node, func(pod *corev1.Pod) bool {
		return len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].RestartCount > 0
	})
	clears := given("clears", "runs", func(*v1beta1.BroadcastJobSpec) {})
	r.cleared = givenPod(t, c, clears, node, func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning })
	ended(t, c, clears, v1beta1.PhaseFailed, v1beta1.JobFailed)
	expires := given("expires", "runs", func(s *v1beta1.BroadcastJobSpec) { s.CompletionPolicy.TTLSecondsAfterFinished = new(int32(0)) })
	ended(t, c, expires, v1beta1.PhaseCompleted, v1beta1.JobComplete)
	return r
}

func (r *refused) begin(t *testing.T) {
	t.Helper()
	givenControllerIn(t, faults.Over(env, r.server.Send), r.namespace)
}

// assertDone waits until everything has happened that was refused.
func (r *refused) assertDone(t *testing.T, c client.Client, node string) {
	t.Helper()
	await.Until(t, func(collect *assert.CollectT) {
		assert.Len(collect, podsOf(t.Context(), collect, c, r.jobs["makes"])[node], 1)
		pauses := r.jobs["pauses"].DeepCopy()
		require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(pauses), pauses))
		assert.True(collect, pauses.Spec.Paused)
		assert.Equal(collect, v1beta1.PhasePaused, pauses.Status.Phase)
		stopped := r.stopped.DeepCopy()
		require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(stopped), stopped))
		assert.Equal(collect, new(int64(1)), stopped.Spec.ActiveDeadlineSeconds)
		for _, o := range []client.Object{r.cleared.DeepCopy(), r.jobs["expires"].DeepCopy()} {
			assert.True(collect, apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(o), o)), o.GetName())
		}
	})
}

// givenPod makes the pod of a job on a node, as an earlier controller did, and waits until it is as wanted.
func givenPod(t *testing.T, c client.Client, job *v1beta1.BroadcastJob, node string, is func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: job.Namespace, Name: job.Name + "-x",
			Labels:          map[string]string{v1beta1.BroadcastJobNameLabel: job.Name, v1beta1.BroadcastJobUIDLabel: string(job.UID)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, v1beta1.GroupVersion.WithKind(v1beta1.BroadcastJobKind))},
		},
		Spec: *job.Spec.Template.Spec.DeepCopy(),
	}
	pod.Spec.NodeName = node
	require.NoError(t, c.Create(t.Context(), pod))
	await.Until(t, func(collect *assert.CollectT) {
		require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
		assert.True(collect, is(pod), "%+v", pod.Status)
	})
	return pod
}

// ended lets a job have ended, as an earlier controller says.
func ended(t *testing.T, c client.Client, job *v1beta1.BroadcastJob, phase v1beta1.BroadcastJobPhase, condition v1beta1.JobConditionType) {
	t.Helper()
	before, now := client.MergeFrom(job.DeepCopy()), metav1.Now()
	job.Status.Phase, job.Status.StartTime, job.Status.CompletionTime = phase, &now, &now
	job.Status.Conditions = []v1beta1.JobCondition{{Type: condition, Status: corev1.ConditionTrue, LastProbeTime: now, LastTransitionTime: now}}
	require.NoError(t, c.Status().Patch(t.Context(), job, before))
}

// annotate changes a job, if it is still there, in a way that concerns nobody.
func annotate(t *testing.T, c client.Client, job *v1beta1.BroadcastJob, note string) {
	t.Helper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"note":"`+note+`"}}}`))
	require.NoError(t, client.IgnoreNotFound(c.Patch(t.Context(), job.DeepCopy(), patch)))
}
