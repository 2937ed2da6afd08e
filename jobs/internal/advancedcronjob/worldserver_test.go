package advancedcronjob

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/plan/refusals"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/informers"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/advancedcronjob/plan"
)

var (
	anyJob     = schema.GroupResource{Group: "batch", Resource: "jobs"}
	errFilling = errors.New("the cache has yet to fill")
)

// moment is the world as a list of the server would show it.
type moment struct {
	cron *v1beta1.AdvancedCronJob
	jobs []client.Object
}

// Now and Since are the clock of passes.
func (w *worldClock) Now() time.Time                  { return w.at }
func (w *worldClock) Since(t time.Time) time.Duration { return w.at.Sub(t) }

type worldClock struct{ *world }

// caches are those of an operator.
type caches struct {
	*informers.Cache
	filling string // the kind that has yet to fill
	shown   [2]int // which moment of the AdvancedCronJob, and of the jobs
}

// GetInformer is part of cache.Cache.
func (c *caches) GetInformer(ctx context.Context, kind client.Object, o ...cache.InformerGetOption) (cache.Informer, error) {
	if c.filling == cluster.KindOf(kind) {
		return nil, errFilling
	}
	return c.Cache.GetInformer(ctx, kind, o...)
}

// newOperator starts an operator, which may have to wait for the kind of the jobs.
func (w *world) newOperator() {
	w.floor = len(w.history) - 1
	w.begin()
	if !w.calm && w.IntN(4) == 0 {
		w.forbidden = w.IntN(2) == 0
		w.passes.Forbidden = func() bool { return w.forbidden }
	}
}

// begin starts the controller of the kind, which remembers nothing.
func (w *world) begin() {
	settings := map[client.Object]cache.ByObject{w.kind.object: w.kind.cached()}
	w.caches = &caches{Cache: informers.New(cluster.New(cluster.Options{}), fastclient.CacheOptions("", settings)), shown: [2]int{-1, -1}}
	if w.dies() {
		w.caches.filling = []string{v1beta1.AdvancedCronJobKind, string(w.kind.name)}[w.IntN(2)]
	}
	require.NoError(w, fastclient.IndexOwners(w.Context(), w.caches, w.kind.object))
	tracker := &refusals.Tracker{}
	w.memory = tracker
	w.passes = &passes{
		kind: w.kind, Clock: &worldClock{w}, Reader: fastclient.NewReader(w.caches, runtime.NewScheme(), fastclient.Options{}),
		Refusals: func(of client.Object, now time.Time) action.Refusals {
			return tracker.For(memory.KeyOf(of), refusals.Observation{Now: now, Generation: of.GetGeneration()})
		},
	}
}

// look has the caches show each kind as it was at some time, and returns the AdvancedCronJob in them.
func (w *world) look() *v1beta1.AdvancedCronJob {
	at := func() int {
		if w.calm {
			return len(w.history) - 1
		}
		return w.floor + w.IntN(len(w.history)-w.floor)
	}
	cron, jobs := at(), at()
	if now := [2]int{cron, jobs}; w.caches.shown != now {
		w.caches.shown = now
		server := simulate.New(cluster.Options{})
		for _, o := range slices.Concat([]client.Object{w.history[cron].cron}, w.history[jobs].jobs, w.others) {
			server.Add(o).SetResourceVersion(o.GetResourceVersion())
		}
		w.caches.Show(server.View(nil))
	}
	return w.history[cron].cron
}

// newCron returns an AdvancedCronJob that makes jobs each minute.
func (w *world) newCron(namespace, uid string) *v1beta1.AdvancedCronJob {
	cron := &v1beta1.AdvancedCronJob{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "cron", UID: types.UID(uid), Generation: 2, CreationTimestamp: metav1.NewTime(noon),
		ResourceVersion: w.version(), Annotations: map[string]string{},
	}}
	cron.Spec.Schedule, cron.Spec.TimeZone = "* * * * *", new("UTC")
	template := metav1.ObjectMeta{
		Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "1", v1beta1.ScheduledAtAnnotation: "copied"},
	}
	switch w.kind.name {
	case v1beta1.TemplateJob:
		cron.Spec.Template.JobTemplate = &batchv1.JobTemplateSpec{ObjectMeta: template}
	case v1beta1.TemplateBroadcastJob:
		cron.Spec.Template.BroadcastJobTemplate = &v1beta1.BroadcastJobTemplateSpec{ObjectMeta: template}
	case v1beta1.TemplateImageListPullJob:
		cron.Spec.Template.ImageListPullJobTemplate = &v1beta1.ImageListPullJobTemplateSpec{ObjectMeta: template}
	}
	return cron
}

// newOthers returns an AdvancedCronJob of the same name in another namespace, and jobs that run: that of a former one of
// the name, one that only refers to the AdvancedCronJob, and one of another namespace that claims to be controlled by it.
func (w *world) newOthers() []client.Object {
	twin := w.newCron("other", "twin")
	twin.Spec.Paused = new(true)
	all := []client.Object{twin}
	for _, of := range []struct {
		namespace, name string
		uid             types.UID
		controller      bool
	}{{"default", "former", "former", true}, {"default", "refers", "cron", false}, {"other", "claims", "cron", true}} {
		job := w.kind.object.DeepCopyObject().(client.Object)
		job.SetNamespace(of.namespace)
		job.SetName(of.name)
		job.SetUID(types.UID(of.name))
		job.SetResourceVersion(w.version())
		job.SetAnnotations(map[string]string{v1beta1.ScheduledAtAnnotation: noon.Format(time.RFC3339)})
		job.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: v1beta1.GroupVersion.String(), Kind: v1beta1.AdvancedCronJobKind, Name: "cron", UID: of.uid, Controller: &of.controller,
		}})
		all = append(all, job)
	}
	return all
}

// version returns the next resourceVersion.
func (w *world) version() string {
	w.versions++
	return strconv.Itoa(w.versions)
}

// change changes a job.
func (w *world) change(job client.Object, change func(client.Object)) {
	i := w.find(job.GetName())
	after := w.now.jobs[i].DeepCopyObject().(client.Object)
	after.SetResourceVersion(w.version())
	change(after)
	w.now.jobs = slices.Clone(w.now.jobs)
	w.now.jobs[i] = after
	w.commit()
}

func (w *world) start(job client.Object) {
	now := new(metav1.NewTime(w.at))
	switch job := job.(type) {
	case *batchv1.Job:
		job.Status.StartTime = now
	case *v1beta1.BroadcastJob:
		job.Status.StartTime = now
	case *v1beta1.ImageListPullJob:
		job.Status.StartTime, job.Status.Desired = now, 2
	}
}

// end is the end of a job in the words of its controller: a Job has a completion time only if it succeeded.
func (w *world) end(job client.Object, state plan.State) {
	w.states[job.GetUID()], w.ends[job.GetUID()] = state, w.at
	now, kind := metav1.NewTime(w.at), map[plan.State]string{plan.Succeeded: "Complete", plan.Failed: "Failed"}[state]
	w.change(job, func(job client.Object) {
		switch job := job.(type) {
		case *batchv1.Job:
			job.Status.Conditions = []batchv1.JobCondition{
				{Type: batchv1.JobSuspended, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(noon)},
				{Type: batchv1.JobConditionType(kind), Status: corev1.ConditionTrue, LastTransitionTime: now},
			}
			if state == plan.Succeeded {
				job.Status.CompletionTime = &now
			}
		case *v1beta1.BroadcastJob:
			job.Status.CompletionTime = &now
			job.Status.Conditions = []v1beta1.JobCondition{
				{Type: v1beta1.JobConditionType(kind), Status: corev1.ConditionTrue, LastTransitionTime: now},
			}
		case *v1beta1.ImageListPullJob:
			job.Status.CompletionTime, job.Status.Succeeded = &now, 1
			if state == plan.Succeeded {
				job.Status.Succeeded = 2
			}
		}
	})
}

func (w *world) remove(i int) {
	w.now.jobs = slices.Delete(slices.Clone(w.now.jobs), i, i+1)
	w.commit()
}

func (w *world) find(name string) int {
	return slices.IndexFunc(w.now.jobs, func(job client.Object) bool { return job.GetName() == name })
}

// write carries out one action as the server does.
func (w *world) write(a *action.Action, view *v1beta1.AdvancedCronJob) progress.Outcome {
	name := a.Object.GetName()
	require.True(w, metav1.IsControlledBy(a.Object, w.now.cron) && a.Object.GetNamespace() == w.now.cron.Namespace, "%s is another's", name)
	i := w.find(name)
	if a.Verb == action.Delete {
		return w.delete(i, a.Object)
	}
	require.Equal(w, action.Create, a.Verb)
	w.attempts = append(w.attempts, w.at)
	switch {
	case w.refusing:
		return progress.OutcomeOf(apierrors.NewForbidden(anyJob, name, errors.New("exceeded quota")))
	case i >= 0:
		return progress.NameTaken("create", apierrors.NewAlreadyExists(anyJob, name), w.now.jobs[i], w.now.cron.UID)
	}
	w.judge(a, view)
	w.writes++
	job := a.Object.DeepCopyObject().(client.Object)
	job.SetResourceVersion(w.version())
	job.SetUID(types.UID("job" + job.GetResourceVersion()))
	w.states[job.GetUID()] = plan.Active
	w.now.jobs = append(slices.Clone(w.now.jobs), job)
	w.commit()
	return progress.Outcome{State: progress.Done, Object: job}
}

func (w *world) delete(i int, known client.Object) progress.Outcome {
	switch name := known.GetName(); {
	case i < 0 || w.now.jobs[i].GetUID() != known.GetUID():
		return progress.OutcomeOf(apierrors.NewNotFound(anyJob, name))
	case w.now.jobs[i].GetResourceVersion() != known.GetResourceVersion():
		return progress.OutcomeOf(apierrors.NewConflict(anyJob, name, errors.New("changed")))
	case w.refusing:
		return progress.OutcomeOf(apierrors.NewForbidden(anyJob, name, errors.New("no")))
	}
	w.writes++
	if w.IntN(3) == 0 {
		w.change(known, func(job client.Object) { job.SetDeletionTimestamp(new(metav1.NewTime(w.at))) })
	} else {
		w.remove(i)
	}
	return progress.Outcome{State: progress.Done}
}

// judge checks what must hold when a job is made: I-ACJ-1, 2, 3 and 5.
func (w *world) judge(a *action.Action, cron *v1beta1.AdvancedCronJob) {
	require.Nil(w, w.passes.Forbidden, "jobs are made that the operator cannot read")
	require.False(w, cron.Spec.Paused != nil && *cron.Spec.Paused, "it is paused")
	policy := cron.Spec.ConcurrencyPolicy
	if policy == "" && w.kind.name == v1beta1.TemplateImageListPullJob {
		policy = v1beta1.ReplaceConcurrent
	}
	for _, job := range w.now.jobs {
		if w.states[job.GetUID()] != plan.Active {
			continue
		}
		require.NotEqual(w, v1beta1.ForbidConcurrent, policy, "%s runs", job.GetName())
		require.False(w, policy == v1beta1.ReplaceConcurrent && job.GetDeletionTimestamp() == nil, "%s was not replaced", job.GetName())
	}
	if token := a.Object.GetAnnotations()[v1beta1.RunNowAnnotation]; token != "" {
		w.tokens[token]++
		require.Equal(w, 1, w.tokens[token], "a token is followed once")
		return
	}
	at := w.scheduledAt(a.Object)
	require.False(w, w.made[at.Unix()], "%s has a job", at)
	w.made[at.Unix()] = true
	late := w.at.Sub(at)
	require.True(w, late >= 0 && late < time.Minute+time.Nanosecond, "only the last run begins")
	if d := cron.Spec.StartingDeadlineSeconds; d != nil {
		require.LessOrEqual(w, late, time.Duration(*d)*time.Second)
	}
}

// scheduledAt returns the time that a job was made for, zero for none.
func (w *world) scheduledAt(job client.Object) time.Time {
	text, ok := job.GetAnnotations()[v1beta1.ScheduledAtAnnotation]
	if !ok {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, text)
	require.NoError(w, err)
	return at
}

// recorded reports whether the status shows that the run of a job was made.
func (w *world) recorded(job client.Object) bool {
	cron := w.now.cron
	if token := job.GetAnnotations()[v1beta1.RunNowAnnotation]; token != "" && token == cron.Annotations[v1beta1.RunNowAnnotation] && token != cron.Status.LastRunNow {
		return false
	}
	return !w.scheduledAt(job).After(plan.TimeOf(cron.Status.LastScheduleTime))
}

// judgeLastRun checks that the status shows whether the job that ended last has failed, if it is still there.
func (w *world) judgeLastRun() {
	var last client.Object
	for _, job := range w.now.jobs {
		if last == nil || w.ends[job.GetUID()].After(w.ends[last.GetUID()]) {
			last = job
		}
	}
	status := &w.now.cron.Status
	if last != nil && w.states[last.GetUID()] == plan.Failed && w.ends[last.GetUID()].After(plan.TimeOf(status.LastSuccessfulTime)) {
		assert.True(w, meta.IsStatusConditionFalse(status.Conditions, v1beta1.CronJobLastRunSucceeded), "%s has failed", last.GetName())
	}
}

func reason(status *v1beta1.AdvancedCronJobStatus) string {
	if c := meta.FindStatusCondition(status.Conditions, v1beta1.CronJobScheduling); c != nil {
		return c.Reason
	}
	return ""
}
