package advancedcronjob_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
	"github.com/flotilla-project/flotilla/core/testing/testenv/faults"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/advancedcronjob/plan"
)

// The first test: no other one may have had the kinds served to the same manager.
func TestACronBeginsWhenTheKindOfItsJobsAppears(t *testing.T) {
	env.Need(t)
	c := givenController(t, env)
	cron := givenCron(t, c, "@every 1s", func(cron *v1beta1.AdvancedCronJob) {
		cron.Spec.Template = v1beta1.CronJobTemplate{BroadcastJobTemplate: &v1beta1.BroadcastJobTemplateSpec{Spec: v1beta1.BroadcastJobSpec{Template: pod()}}}
	})
	eventually(t, c, cron, func(collect *assert.CollectT, cron *v1beta1.AdvancedCronJob) {
		assert.Equal(collect, plan.ReasonNotServed, scheduling(cron))
		assert.Equal(collect, v1beta1.TemplateBroadcastJob, cron.Status.Type)
	})
	other := givenCron(t, c, "@every 1s")
	eventually(t, c, other, func(collect *assert.CollectT, cron *v1beta1.AdvancedCronJob) {
		assert.NotEmpty(collect, cron.Status.Active, "other kinds are not held up")
	})
	givenKinds(t)
	eventually(t, c, cron, func(collect *assert.CollectT, cron *v1beta1.AdvancedCronJob) {
		require.NotEmpty(collect, cron.Status.Active)
		assert.Equal(collect, "BroadcastJob", cron.Status.Active[0].Kind)
		assert.Equal(collect, plan.ReasonAsScheduled, scheduling(cron))
		require.NotEmpty(collect, cron.Status.MissedRuns)
		assert.Equal(collect, plan.ReasonNotServed, cron.Status.MissedRuns[0].Reason)
	})
}

func TestAFailedRunIsShown(t *testing.T) {
	env.Need(t)
	c := givenController(t, env)
	cron := givenCron(t, c, "@yearly", func(cron *v1beta1.AdvancedCronJob) {
		cron.Annotations = map[string]string{v1beta1.RunNowAnnotation: "1"}
	})
	eventually(t, c, cron, func(collect *assert.CollectT, cron *v1beta1.AdvancedCronJob) {
		require.Len(collect, cron.Status.Active, 1)
	})
	job := jobs(t, c, cron.Namespace)[0]
	fail(t, c, &job)
	eventually(t, c, cron, func(collect *assert.CollectT, cron *v1beta1.AdvancedCronJob) {
		last := meta.FindStatusCondition(cron.Status.Conditions, v1beta1.CronJobLastRunSucceeded)
		require.NotNil(collect, last)
		assert.Equal(collect, metav1.ConditionFalse, last.Status)
		assert.Equal(collect, "Job "+job.Name+" has failed", last.Message)
	})
}

func TestJobsAreMadeAndForgotten(t *testing.T) {
	env.Need(t)
	c := givenController(t, env)
	cron := givenCron(t, c, "@every 1s", func(cron *v1beta1.AdvancedCronJob) {
		cron.Spec.SuccessfulJobsHistoryLimit = new(int32(1))
		cron.Spec.ConcurrencyPolicy = v1beta1.ForbidConcurrent
	})
	for range 3 {
		eventually(t, c, cron, func(collect *assert.CollectT, cron *v1beta1.AdvancedCronJob) {
			require.Len(collect, cron.Status.Active, 1)
			assert.NotNil(collect, cron.Status.LastScheduleTime)
			assert.NotNil(collect, cron.Status.NextScheduleTime)
			assert.Equal(collect, cron.Generation, cron.Status.ObservedGeneration)
			var job batchv1.Job
			require.NoError(collect, c.Get(t.Context(), client.ObjectKey{Namespace: cron.Namespace, Name: cron.Status.Active[0].Name}, &job))
			assert.Equal(collect, "cron", job.Labels["of"])
			assert.Equal(collect, job.Annotations[v1beta1.ScheduledAtAnnotation], job.Annotations[batchv1.CronJobScheduledTimestampAnnotation])
			complete(t, c, &job)
		})
	}
	testenv.Edit(t, c, cron, func(cron *v1beta1.AdvancedCronJob) { cron.Spec.Paused = new(true) })
	eventually(t, c, cron, func(collect *assert.CollectT, cron *v1beta1.AdvancedCronJob) {
		assert.Equal(collect, plan.ReasonPaused, scheduling(cron))
		assert.NotNil(collect, cron.Status.LastSuccessfulTime)
		ended := 0
		for _, job := range jobs(t, c, cron.Namespace) {
			assert.Empty(collect, job.Finalizers, "nothing is orphaned")
			if job.Status.CompletionTime != nil {
				ended++
			}
		}
		assert.Equal(collect, 1, ended)
	})
}

func TestAnAnnotationRunsAJobAtOnce(t *testing.T) {
	env.Need(t)
	c := givenController(t, env)
	cron := givenCron(t, c, "@yearly")
	for i, token := range []string{"first", "first", "second"} {
		testenv.Edit(t, c, cron, func(cron *v1beta1.AdvancedCronJob) {
			metav1.SetMetaDataAnnotation(&cron.ObjectMeta, v1beta1.RunNowAnnotation, token)
			metav1.SetMetaDataAnnotation(&cron.ObjectMeta, "edit", fmt.Sprint(i))
		})
		eventually(t, c, cron, func(collect *assert.CollectT, cron *v1beta1.AdvancedCronJob) {
			assert.Equal(collect, token, cron.Status.LastRunNow)
			assert.Nil(collect, cron.Status.LastScheduleTime, "it is no run of the schedule")
		})
	}
	assert.Len(t, jobs(t, c, cron.Namespace), 2)
}

// What a quota refuses is told in the status and is made when there is room, soon enough.
func TestARefusedJobIsMadeWhenItMay(t *testing.T) {
	env.Need(t)
	c := givenController(t, env)
	namespace := env.Namespace(t)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "none"}}
	quota.Spec.Hard = corev1.ResourceList{"count/jobs.batch": resource.MustParse("0")}
	require.NoError(t, c.Create(t.Context(), quota))
	quota.Status.Hard, quota.Status.Used = quota.Spec.Hard, quota.Spec.Hard
	require.NoError(t, c.Status().Update(t.Context(), quota))
	cron := givenCron(t, c, "@yearly", func(cron *v1beta1.AdvancedCronJob) {
		cron.Namespace = namespace
		cron.Annotations = map[string]string{v1beta1.RunNowAnnotation: "now"}
	})
	eventually(t, c, cron, func(collect *assert.CollectT, cron *v1beta1.AdvancedCronJob) {
		assert.Equal(collect, plan.ReasonRefused, scheduling(cron))
	})
	require.NoError(t, c.Delete(t.Context(), quota))
	eventually(t, c, cron, func(collect *assert.CollectT, cron *v1beta1.AdvancedCronJob) {
		assert.Len(collect, cron.Status.Active, 1)
		assert.Equal(collect, plan.ReasonAsScheduled, scheduling(cron))
	})
}

// Whichever write is the last one of a manager, no run has two jobs, and the next manager goes on.
func TestAKilledManagerMakesNoRunTwice(t *testing.T) {
	env.Need(t)
	for writes := int64(1); writes <= 5; writes++ {
		t.Run(fmt.Sprint(writes), func(t *testing.T) {
			assertRunsOnce(t, v1beta1.ReplaceConcurrent, func() {
				send, dead := faults.Kill(writes)
				t.Run("killed", func(t *testing.T) {
					givenController(t, faults.Over(env, send))
					select {
					case <-dead:
					case <-t.Context().Done():
					}
				})
				givenController(t, env)
			})
		})
	}
}

// Two managers at once, which happens when a leader is slow to see that it is none any more, make no run twice either.
func TestTwoManagersMakeNoRunTwice(t *testing.T) {
	env.Need(t)
	assertRunsOnce(t, v1beta1.AllowConcurrent, func() {
		givenController(t, env)
		givenController(t, env)
	})
}

// assertRunsOnce has managers follow a schedule of every second, and watches the jobs of four runs.
func assertRunsOnce(t *testing.T, policy v1beta1.ConcurrencyPolicy, manage func()) {
	t.Helper()
	cron := givenCron(t, env.Client(t), "@every 1s", func(cron *v1beta1.AdvancedCronJob) { cron.Spec.ConcurrencyPolicy = policy })
	watched, err := client.NewWithWatch(env.Config, client.Options{Scheme: env.Scheme})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events, err := watched.Watch(ctx, &batchv1.JobList{}, client.InNamespace(cron.Namespace))
	require.NoError(t, err)
	manage()
	made := map[string]string{} // by the time they were made for
	for len(made) < 4 {
		job, ok := (<-events.ResultChan()).Object.(*batchv1.Job)
		require.True(t, ok)
		at := job.Annotations[v1beta1.ScheduledAtAnnotation]
		if uid := string(job.UID); made[at] != "" {
			require.Equal(t, made[at], uid, at)
		} else {
			made[at] = uid
		}
	}
}

// What OpenKruise has left goes on: its jobs are known by the UID of their owner, whichever version that names, and no
// run is made again.
func TestWhatOpenKruiseHasMadeIsTakenOver(t *testing.T) {
	env.Need(t)
	c := env.Client(t)
	last := metav1.NewTime(time.Now().Truncate(time.Second))
	cron := givenCron(t, c, "0 0 1 1 *")
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: cron.Namespace, Name: fmt.Sprintf("cron-%d", last.Unix()),
		Annotations: map[string]string{v1beta1.ScheduledAtAnnotation: last.Format(time.RFC3339)},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps.kruise.io/v1alpha1", Kind: "AdvancedCronJob", Name: cron.Name, UID: cron.UID, Controller: new(true), BlockOwnerDeletion: new(true),
		}},
	}, Spec: batchv1.JobSpec{Template: pod()}}
	require.NoError(t, c.Create(t.Context(), job))
	before := client.MergeFrom(cron.DeepCopy())
	active := corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: job.Namespace, Name: job.Name, UID: job.UID, ResourceVersion: "1"}
	cron.Status = v1beta1.AdvancedCronJobStatus{Type: v1beta1.TemplateJob, LastScheduleTime: &last, Active: []corev1.ObjectReference{active}}
	require.NoError(t, c.Status().Patch(t.Context(), cron, before))
	other := givenCron(t, c, "* * * * *", func(cron *v1beta1.AdvancedCronJob) { cron.Spec.Paused = new(true) })
	before = client.MergeFrom(other.DeepCopy())
	other.Status = v1beta1.AdvancedCronJobStatus{Type: v1beta1.TemplateJob}
	require.NoError(t, c.Status().Patch(t.Context(), other, before))

	givenController(t, env)
	eventually(t, c, cron, func(collect *assert.CollectT, cron *v1beta1.AdvancedCronJob) {
		assert.Equal(collect, cron.Generation, cron.Status.ObservedGeneration)
		assert.Equal(collect, []corev1.ObjectReference{active}, cron.Status.Active)
		assert.True(collect, last.Equal(cron.Status.LastScheduleTime))
		assert.Empty(collect, cron.Status.MissedRuns)
	})
	eventually(t, c, other, func(collect *assert.CollectT, cron *v1beta1.AdvancedCronJob) {
		assert.Equal(collect, plan.ReasonPaused, scheduling(cron))
	})
	complete(t, c, job)
	eventually(t, c, cron, func(collect *assert.CollectT, cron *v1beta1.AdvancedCronJob) {
		assert.Empty(collect, cron.Status.Active)
		assert.NotNil(collect, cron.Status.LastSuccessfulTime)
	})
	assert.Len(t, jobs(t, c, cron.Namespace), 1)
	assert.Empty(t, jobs(t, c, other.Namespace))
}

// Whatever the server answers to creations, there are few of them, and the job is made soon after. The answers are given
// side by side, each to a controller of its own.
func TestRefusedCreationsAreFew(t *testing.T) {
	env.Need(t)
	c := env.Client(t)
	crons, servers := map[string]*v1beta1.AdvancedCronJob{}, map[string]*faults.Refusing{}
	for name, err := range faults.Refusals() {
		crons[name] = givenCron(t, c, "@yearly", func(cron *v1beta1.AdvancedCronJob) {
			cron.Annotations = map[string]string{v1beta1.RunNowAnnotation: "now"}
		})
		servers[name] = &faults.Refusing{Err: err, For: 11 * time.Second, Of: func(r *http.Request) bool {
			return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/jobs")
		}}
		givenControllerIn(t, faults.Over(env, servers[name].Send), crons[name].Namespace)
	}
	for name, server := range servers {
		t.Run(name, func(t *testing.T) {
			await.Until(t, func(collect *assert.CollectT) {
				assert.Len(collect, jobs(t, c, crons[name].Namespace), 1)
			})
			server.AssertQuiet(t, 2)
		})
	}
}
