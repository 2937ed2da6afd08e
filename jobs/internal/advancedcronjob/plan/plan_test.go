package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// noon is a Wednesday.
var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func after(d string) time.Time {
	passed, err := time.ParseDuration(d)
	if err != nil {
		panic(err)
	}
	return noon.Add(passed)
}

func metaTime(at time.Time) *metav1.Time { return new(metav1.NewTime(at)) }

// every5 makes Jobs every five minutes, and was last due at noon.
func every5(changes ...func(*v1beta1.AdvancedCronJob)) *v1beta1.AdvancedCronJob {
	cron := &v1beta1.AdvancedCronJob{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "cron", UID: "cron", Generation: 2, CreationTimestamp: metav1.NewTime(after("-24h")),
	}}
	cron.Spec.Schedule = "*/5 * * * *"
	cron.Spec.TimeZone = new("UTC")
	cron.Spec.Template.JobTemplate = &batchv1.JobTemplateSpec{ObjectMeta: metav1.ObjectMeta{
		Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "1", v1beta1.ScheduledAtAnnotation: "copied"},
	}}
	cron.Status.LastScheduleTime, cron.Status.ObservedGeneration = metaTime(noon), 2
	for _, change := range changes {
		change(cron)
	}
	return cron
}

func policy(policy v1beta1.ConcurrencyPolicy) func(*v1beta1.AdvancedCronJob) {
	return func(cron *v1beta1.AdvancedCronJob) { cron.Spec.ConcurrencyPolicy = policy }
}

func deadline(seconds int64) func(*v1beta1.AdvancedCronJob) {
	return func(cron *v1beta1.AdvancedCronJob) { cron.Spec.StartingDeadlineSeconds = &seconds }
}

// child is the job of a time.
func child(cron *v1beta1.AdvancedCronJob, at time.Time, state State) Child {
	r := run{at: at}
	o := r.job(cron)
	o.SetUID(types.UID(o.GetName()))
	o.SetResourceVersion("1")
	c := Child{Object: o, Kind: "Job", APIVersion: "batch/v1", State: state, Started: at.Add(time.Second)}
	if state != Active {
		c.Ended = at.Add(time.Minute)
	}
	return c
}

// compute returns the plan as text, without its times of waking, and the status.
func compute(t *testing.T, s Snapshot) (string, *v1beta1.AdvancedCronJobStatus) {
	t.Helper()
	p := Compute(s)
	text, _, _ := strings.Cut(p.String(), "wake after")
	status := p.Status(nil, action.Failures{})
	require.NotNil(t, status)
	return text, status
}

func missed(status *v1beta1.AdvancedCronJobStatus) (all []string) {
	for _, m := range status.MissedRuns {
		all = append(all, fmt.Sprintf("%s %d %s", m.ScheduledAt.UTC().Format("15:04"), m.Count, m.Reason))
	}
	return all
}

func reason(status *v1beta1.AdvancedCronJobStatus) string { return scheduling(status).Reason }

func scheduling(status *v1beta1.AdvancedCronJobStatus) *metav1.Condition {
	return meta.FindStatusCondition(status.Conditions, v1beta1.CronJobScheduling)
}

func createOf(at time.Time) string {
	return fmt.Sprintf("create:\n  Create job cron-%d (Run): %s\n", at.Unix(), at.UTC().Format(time.RFC3339))
}

func TestRuns(t *testing.T) {
	for name, test := range map[string]struct {
		cron     *v1beta1.AdvancedCronJob
		now      string
		children func(*v1beta1.AdvancedCronJob) []Child
		plan     string
		missed   []string
		reason   string
	}{
		"not yet":       {cron: every5(), now: "4m59s", reason: ReasonAsScheduled},
		"at the second": {cron: every5(), now: "5m", plan: createOf(after("5m")), reason: ReasonAsScheduled},
		"late":          {cron: every5(), now: "9m59s", plan: createOf(after("5m")), reason: ReasonAsScheduled},
		"only the last one after an outage": {
			cron: every5(), now: "31m", plan: createOf(after("30m")), missed: []string{"12:25 5 Late"}, reason: ReasonAsScheduled,
		},
		"within the deadline": {cron: every5(deadline(120)), now: "6m", plan: createOf(after("5m")), reason: ReasonAsScheduled},
		"at the deadline":     {cron: every5(deadline(120)), now: "7m", plan: createOf(after("5m")), reason: ReasonAsScheduled},
		"after the deadline":  {cron: every5(deadline(60)), now: "31m30s", missed: []string{"12:30 6 DeadlineExceeded"}, reason: ReasonAsScheduled},
		"paused": {
			cron: every5(func(cron *v1beta1.AdvancedCronJob) { cron.Spec.Paused = new(true) }), now: "31m", reason: ReasonPaused,
		},
		"after a pause": {
			cron: every5(func(cron *v1beta1.AdvancedCronJob) {
				cron.Status.Conditions = []metav1.Condition{{Type: v1beta1.CronJobScheduling, Status: metav1.ConditionFalse, Reason: ReasonPaused}}
			}), now: "31m", plan: createOf(after("30m")), missed: []string{"12:25 5 Paused"}, reason: ReasonAsScheduled,
		},
		"allowed beside another": {
			cron: every5(), now: "5m", plan: createOf(after("5m")), reason: ReasonAsScheduled,
			children: func(cron *v1beta1.AdvancedCronJob) []Child { return []Child{child(cron, noon, Active)} },
		},
		"forbidden beside another": {
			cron: every5(policy(v1beta1.ForbidConcurrent)), now: "12m", missed: []string{"12:05 1 JobActive"}, reason: ReasonActive,
			children: func(cron *v1beta1.AdvancedCronJob) []Child { return []Child{child(cron, noon, Active)} },
		},
		"forbidden beside one that goes": {
			cron: every5(policy(v1beta1.ForbidConcurrent)), now: "5m", reason: ReasonActive,
			children: func(cron *v1beta1.AdvancedCronJob) []Child {
				c := child(cron, noon, Active)
				c.Object.SetDeletionTimestamp(metaTime(noon))
				return []Child{c}
			},
		},
		"after another": {
			cron: every5(policy(v1beta1.ForbidConcurrent), func(cron *v1beta1.AdvancedCronJob) {
				cron.Status.MissedRuns = []v1beta1.MissedRun{{ScheduledAt: *metaTime(after("5m")), Count: 1, Reason: ReasonActive}}
			}), now: "12m", plan: createOf(after("10m")), missed: []string{"12:05 1 JobActive"}, reason: ReasonAsScheduled,
			children: func(cron *v1beta1.AdvancedCronJob) []Child { return []Child{child(cron, noon, Succeeded)} },
		},
		"the other goes first": {
			cron: every5(policy(v1beta1.ReplaceConcurrent)), now: "5m", reason: ReasonAsScheduled,
			plan:     fmt.Sprintf("replace:\n  Delete job cron-%d (Replace): a new job replaces it (concurrencyPolicy Replace)\n", noon.Unix()),
			children: func(cron *v1beta1.AdvancedCronJob) []Child { return []Child{child(cron, noon, Active)} },
		},
		"the other is going": {
			cron: every5(policy(v1beta1.ReplaceConcurrent)), now: "5m", plan: createOf(after("5m")), reason: ReasonAsScheduled,
			children: func(cron *v1beta1.AdvancedCronJob) []Child {
				c := child(cron, noon, Active)
				c.Object.SetDeletionTimestamp(metaTime(noon))
				return []Child{c}
			},
		},
		"made, but not told by the status": {
			cron: every5(), now: "16m", reason: ReasonAsScheduled, missed: []string{"12:10 2 Late"},
			children: func(cron *v1beta1.AdvancedCronJob) []Child { return []Child{child(cron, after("15m"), Active)} },
		},
		"the job of the last run is gone, and an older one is left": {
			cron: every5(), now: "4m", reason: ReasonAsScheduled,
			children: func(cron *v1beta1.AdvancedCronJob) []Child { return []Child{child(cron, after("-5m"), Succeeded)} },
		},
		"a time of the future": {
			cron: every5(), now: "-10m", reason: ReasonAsScheduled,
		},
		"no time": {
			cron: every5(func(cron *v1beta1.AdvancedCronJob) { cron.Spec.Schedule = "TZ=0" }), now: "5m", reason: ReasonInvalid,
		},
		"no template": {
			cron: every5(func(cron *v1beta1.AdvancedCronJob) { cron.Spec.Template.JobTemplate = nil }), now: "5m", reason: ReasonInvalid,
		},
		"of OpenKruise, which has forgotten its runs": {
			cron: every5(func(cron *v1beta1.AdvancedCronJob) {
				cron.Status = v1beta1.AdvancedCronJobStatus{Type: v1beta1.TemplateJob}
			}), now: "6m", missed: []string{"12:05 100 TakenOver"}, reason: ReasonAsScheduled,
		},
		"new": {
			cron: every5(func(cron *v1beta1.AdvancedCronJob) {
				cron.Status, cron.CreationTimestamp = v1beta1.AdvancedCronJobStatus{}, *metaTime(after("2m"))
			}), now: "5m", plan: createOf(after("5m")), reason: ReasonAsScheduled,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := Snapshot{Cron: test.cron, Now: after(test.now)}
			if test.children != nil {
				s.Children = test.children(test.cron)
			}
			before := test.cron.DeepCopy()
			text, status := compute(t, s)
			assert.Equal(t, test.plan, text)
			assert.Equal(t, test.missed, missed(status))
			assert.Equal(t, test.reason, reason(status))
			assert.Equal(t, before, test.cron, "the snapshot was changed")
		})
	}
}

func TestPlansWakeForTheNextRun(t *testing.T) {
	p := Compute(Snapshot{Cron: every5(), Now: after("2m10s")})
	assert.Equal(t, "wake after 2m50s\n", p.String())
	assert.Equal(t, after("5m"), p.Status(nil, action.Failures{}).NextScheduleTime.UTC())
	assert.Empty(t, every5(func(cron *v1beta1.AdvancedCronJob) { cron.DeletionTimestamp = metaTime(noon) }).Status.Active)
	gone := Compute(Snapshot{Cron: every5(func(cron *v1beta1.AdvancedCronJob) { cron.DeletionTimestamp = metaTime(noon) }), Now: after("5m")})
	assert.True(t, gone.Empty())
	assert.Nil(t, gone.Status(nil, action.Failures{}))
}

func TestJobsAreMadeFromTheTemplateAsItIs(t *testing.T) {
	spec := func(t v1beta1.CronJobTemplate) *v1beta1.AdvancedCronJob {
		return every5(func(cron *v1beta1.AdvancedCronJob) { cron.Spec.Template, cron.Spec.TimeZone = t, new("Asia/Shanghai") })
	}
	template := every5().Spec.Template.JobTemplate
	list := &v1beta1.ImageListPullJobTemplateSpec{ObjectMeta: template.ObjectMeta, Spec: v1beta1.ImageListPullJobSpec{Images: []string{"a"}}}
	broadcast := &v1beta1.BroadcastJobTemplateSpec{ObjectMeta: template.ObjectMeta, Spec: v1beta1.BroadcastJobSpec{Paused: true}}
	for kind, cron := range map[v1beta1.TemplateKind]*v1beta1.AdvancedCronJob{
		v1beta1.TemplateJob:              spec(v1beta1.CronJobTemplate{JobTemplate: template, BroadcastJobTemplate: broadcast}),
		v1beta1.TemplateBroadcastJob:     spec(v1beta1.CronJobTemplate{BroadcastJobTemplate: broadcast}),
		v1beta1.TemplateImageListPullJob: spec(v1beta1.CronJobTemplate{BroadcastJobTemplate: broadcast, ImageListPullJobTemplate: list}),
	} {
		p := Compute(Snapshot{Cron: cron, Now: after("5m")})
		require.Len(t, p.Steps, 1)
		made := p.Steps[0].Actions[0].Object
		at := "2026-03-04T20:05:00+08:00"
		assert.Equal(t, map[string]string{"a": "1", v1beta1.ScheduledAtAnnotation: at, batchv1.CronJobScheduledTimestampAnnotation: at}, made.GetAnnotations())
		assert.Equal(t, map[string]string{"l": "1"}, made.GetLabels())
		assert.Equal(t, fmt.Sprintf("cron-%d", after("5m").Unix()), made.GetName())
		assert.True(t, metav1.IsControlledBy(made, cron))
		assert.Equal(t, v1beta1.GroupVersion.String(), made.GetOwnerReferences()[0].APIVersion)
		assert.Equal(t, kind, p.Status(nil, action.Failures{}).Type)
		assert.Equal(t, strings.ToLower(string(kind)), strings.Fields(p.Steps[0].Actions[0].String())[1])
	}
}

// Two managers that see the world at different times give a run's job the same name, so that the server takes one
// (I-ACJ-1).
func TestWhateverAManagerSeesARunHasOneName(t *testing.T) {
	active := func(cron *v1beta1.AdvancedCronJob) {
		cron.Generation, cron.ResourceVersion, cron.Spec.TimeZone = 3, "7", new("Asia/Shanghai")
		cron.Status.Active = []corev1.ObjectReference{{Kind: "Job", Name: "another"}}
	}
	want := fmt.Sprintf("cron-%d", after("5m").Unix())
	for name, s := range map[string]Snapshot{
		"in time":    {Cron: every5(), Now: after("5m")},
		"late":       {Cron: every5(), Now: after("9m59.9s")},
		"runs ago":   {Cron: every5(func(cron *v1beta1.AdvancedCronJob) { cron.Status.LastScheduleTime = metaTime(after("-1h")) }), Now: after("6m")},
		"with a job": {Cron: every5(active), Now: after("6m"), Children: []Child{child(every5(), noon, Active), child(every5(), after("-5m"), Failed)}},
	} {
		p := Compute(s)
		require.Equal(t, 1, p.Count(action.Create), name)
		steps := p.Steps
		assert.Equal(t, want, steps[len(steps)-1].Actions[0].Object.GetName(), name)
	}
}

// The kind decides what happens where nothing is said: images that are pulled twice at a time are of no use.
func TestTheDefaultPolicyOfImageListsIsReplace(t *testing.T) {
	cron := every5(func(cron *v1beta1.AdvancedCronJob) {
		cron.Spec.Template = v1beta1.CronJobTemplate{ImageListPullJobTemplate: &v1beta1.ImageListPullJobTemplateSpec{}}
	})
	p := Compute(Snapshot{Cron: cron, Now: after("5m"), Children: []Child{child(cron, noon, Active)}})
	assert.Equal(t, 1, p.Count(action.Delete))
	assert.Zero(t, p.Count(action.Create))
}

// A job whose run the status does not tell yet would be made again if a manager were killed after its deletion.
func TestWhatIsReplacedIsToldOfFirst(t *testing.T) {
	cron := every5(policy(v1beta1.ReplaceConcurrent))
	s := Snapshot{Cron: cron, Now: after("10m"), Children: []Child{child(cron, after("5m"), Active)}}
	p := Compute(s)
	assert.True(t, p.Empty())
	cron.Status = *p.Status(nil, action.Failures{})
	p = Compute(s)
	assert.Equal(t, 1, p.Count(action.Delete))
	assert.Zero(t, p.Count(action.Create))
}

func TestATokenIsFollowedOnce(t *testing.T) {
	cron := every5(func(cron *v1beta1.AdvancedCronJob) {
		cron.Annotations = map[string]string{v1beta1.RunNowAnnotation: "t1"}
	})
	p := Compute(Snapshot{Cron: cron, Now: after("1m")})
	require.Len(t, p.Steps, 1)
	made := p.Steps[0].Actions[0].Object
	assert.Len(t, made.GetName(), len("cron-1772625900"))
	assert.Empty(t, made.GetAnnotations()[v1beta1.ScheduledAtAnnotation], "it is no run of the schedule")
	made.SetUID("made")
	c := Child{Object: made, Kind: "Job", APIVersion: "batch/v1", State: Active}

	status := p.Status([]Child{c}, action.Failures{})
	assert.Equal(t, "t1", status.LastRunNow)
	assert.Equal(t, noon, status.LastScheduleTime.UTC())
	require.Len(t, status.Active, 1)

	p = Compute(Snapshot{Cron: cron, Now: after("1m"), Children: []Child{c}})
	assert.True(t, p.Empty(), "after a crash, the job tells")
	assert.Equal(t, "t1", p.Status(nil, action.Failures{}).LastRunNow)

	done := every5(func(now *v1beta1.AdvancedCronJob) { now.Annotations, now.Status = cron.Annotations, *status })
	p = Compute(Snapshot{Cron: done, Now: after("1m")})
	assert.True(t, p.Empty(), "when the job is gone, the status tells")

	done.Annotations = map[string]string{v1beta1.RunNowAnnotation: "t2"}
	done.Spec.Paused = new(true)
	p = Compute(Snapshot{Cron: done, Now: after("1m")})
	assert.True(t, p.Empty(), "nothing is made while paused")
	done.Spec.Paused = nil
	done.Spec.ConcurrencyPolicy = v1beta1.ForbidConcurrent
	p = Compute(Snapshot{Cron: done, Now: after("1m"), Children: []Child{c}})
	assert.True(t, p.Empty(), "nor beside another one")
	p = Compute(Snapshot{Cron: done, Now: after("1m")})
	assert.Equal(t, 1, p.Count(action.Create))
}

func TestHistory(t *testing.T) {
	limits := func(succeeded, failed int32) func(*v1beta1.AdvancedCronJob) {
		return func(cron *v1beta1.AdvancedCronJob) {
			cron.Spec.SuccessfulJobsHistoryLimit, cron.Spec.FailedJobsHistoryLimit = &succeeded, &failed
		}
	}
	cron := every5(limits(2, 1), policy(v1beta1.ReplaceConcurrent))
	var children []Child
	for i, state := range []State{Succeeded, Failed, Succeeded, Failed, Succeeded, Active} {
		children = append(children, child(cron, after(fmt.Sprintf("%dm", 5*(i-5))), state))
	}
	p := Compute(Snapshot{Cron: cron, Now: after("5m"), Children: children})
	assert.Equal(t, fmt.Sprintf(`history:
  Delete job cron-%d (History): the history limit is exceeded
  Delete job cron-%d (History): the history limit is exceeded
replace:
  Delete job cron-%d (Replace): a new job replaces it (concurrencyPolicy Replace)
wake after 5m0s
`, after("-25m").Unix(), after("-20m").Unix(), noon.Unix()), p.String())
	for _, s := range p.Steps {
		for _, a := range s.Actions {
			assert.Equal(t, metav1.DeletePropagationBackground, a.Propagation)
		}
	}
	assert.Equal(t, after("-4m").UTC(), p.Status(nil, action.Failures{}).LastSuccessfulTime.UTC())

	defaults := every5()
	p = Compute(Snapshot{Cron: defaults, Now: noon, Children: children[:5]})
	assert.Equal(t, 1, p.Count(action.Delete), "three that succeeded and one that failed stay")

	none := every5(limits(0, 0))
	p = Compute(Snapshot{Cron: none, Now: noon, Children: []Child{child(none, noon, Succeeded)}})
	assert.Equal(t, 1, p.Count(action.Delete))
	none.Status.LastScheduleTime = metaTime(after("-5m"))
	p = Compute(Snapshot{Cron: none, Now: noon, Children: []Child{child(none, noon, Succeeded)}})
	assert.True(t, p.Empty(), "it is all that tells of its run")
}

func TestStatusTellsOfJobs(t *testing.T) {
	cron := every5()
	running, ended := child(cron, noon, Active), child(cron, after("-5m"), Succeeded)
	cron.Status.Active = []corev1.ObjectReference{
		{APIVersion: "batch/v1", Kind: "Job", Namespace: "default", Name: running.Object.GetName(), UID: running.Object.GetUID(), ResourceVersion: "0"},
		{UID: ended.Object.GetUID()},
	}
	p := Compute(Snapshot{Cron: cron, Now: after("1m"), Children: []Child{running, ended}})
	status := p.Status(nil, action.Failures{})
	assert.Equal(t, cron.Status.Active[:1], status.Active, "a version does not change with each event of the job")
	require.Len(t, p.Notices, 1)
	assert.Equal(t, EventCompleted, p.Notices[0].Reason)

	p = Compute(Snapshot{Cron: cron, Now: after("5m")})
	status = p.Status([]Child{child(cron, after("5m"), Active)}, action.Failures{})
	assert.Equal(t, after("5m"), status.LastScheduleTime.UTC())
	assert.Len(t, status.Active, 1)
	status = p.Status(nil, action.Failures{ScaleError: "no"})
	assert.Equal(t, ReasonRefused, reason(status))
	assert.Equal(t, "no", scheduling(status).Message)
	p = Compute(Snapshot{Cron: cron, Now: after("1m")})
	assert.Equal(t, ReasonAsScheduled, reason(p.Status(nil, action.Failures{ScaleError: "a job that is to be forgotten stays"})))
}

func TestMissedRunsAreBoundedAndJoined(t *testing.T) {
	p := &pass{Snapshot: Snapshot{Cron: every5()}, status: &v1beta1.AdvancedCronJobStatus{}}
	p.miss(after("5m"), 1, ReasonLate)
	p.miss(after("10m"), 2, ReasonLate)
	p.miss(after("20m"), 1, ReasonPaused)
	assert.Equal(t, []string{"12:10 3 Late", "12:20 1 Paused"}, missed(p.status))
	p.status.LastScheduleTime = metaTime(after("25m"))
	p.miss(after("30m"), 1, ReasonPaused)
	assert.Len(t, p.status.MissedRuns, 3, "a job was made in between")
	for i := range 20 {
		p.status.LastScheduleTime = metaTime(after(fmt.Sprintf("%dm", 35+10*i)))
		p.miss(after(fmt.Sprintf("%dm", 40+10*i)), 1, ReasonPaused)
	}
	assert.Len(t, p.status.MissedRuns, v1beta1.MaxMissedRuns)
}

func TestUsersAreToldOnce(t *testing.T) {
	for name, test := range map[string]struct {
		snapshot Snapshot
		want     string
	}{
		"a kind that is missing": {Snapshot{Cron: every5(), NotServed: true}, EventNotServed},
		"no schedule":            {Snapshot{Cron: every5(func(cron *v1beta1.AdvancedCronJob) { cron.Spec.Schedule = "x" })}, EventInvalid},
		"a job that runs": {Snapshot{
			Cron: every5(policy(v1beta1.ForbidConcurrent)), Now: after("5m"), Children: []Child{child(every5(), noon, Active)},
		}, EventActive},
		"too late":  {Snapshot{Cron: every5(deadline(10)), Now: after("6m")}, EventMissed},
		"too often": {Snapshot{Cron: every5(), Now: after("48h")}, EventTooMany},
	} {
		t.Run(name, func(t *testing.T) {
			p := Compute(test.snapshot)
			require.Len(t, p.Notices, 1)
			assert.Equal(t, test.want, p.Notices[0].Reason)
			test.snapshot.Cron = test.snapshot.Cron.DeepCopy()
			test.snapshot.Cron.Status = *p.Status(nil, action.Failures{})
			p = Compute(test.snapshot)
			assert.Empty(t, p.Notices)
		})
	}
}

// A container of a Job without imagePullPolicy means Always, init containers too, as in all kinds of jobs.
func TestImagesOfAJobArePulledAlways(t *testing.T) {
	cron := every5()
	cron.Spec.Template.JobTemplate.Spec.Template.Spec = corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "first", Image: "app:1"}},
		Containers:     []corev1.Container{{Name: "main", Image: "app:stable"}, {Name: "own", Image: "app:2", ImagePullPolicy: corev1.PullIfNotPresent}},
	}
	before := cron.DeepCopy()
	job := run{at: noon}.job(cron).(*batchv1.Job)
	pod := &job.Spec.Template.Spec
	assert.Equal(t, []corev1.PullPolicy{corev1.PullAlways, corev1.PullAlways, corev1.PullIfNotPresent},
		[]corev1.PullPolicy{pod.InitContainers[0].ImagePullPolicy, pod.Containers[0].ImagePullPolicy, pod.Containers[1].ImagePullPolicy})
	assert.Equal(t, before, cron)
}

// The condition follows the run that ended last, also when its job, or that of the run before, is gone.
func TestTheLastRunIsTold(t *testing.T) {
	cron := every5(func(cron *v1beta1.AdvancedCronJob) { cron.Status.LastScheduleTime = nil })
	lastRun := func(now string, children ...Child) string {
		_, status := compute(t, Snapshot{Cron: cron, Now: after(now), Children: children})
		cron = cron.DeepCopy()
		cron.Status = *status
		if c := meta.FindStatusCondition(status.Conditions, v1beta1.CronJobLastRunSucceeded); c != nil {
			return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
		}
		return ""
	}
	job := func(at string, state State) Child { return child(cron, after(at), state) }
	failed := func(at string) string {
		return fmt.Sprintf("False RunFailed: Job cron-%d has failed", after(at).Unix())
	}

	assert.Empty(t, lastRun("1s"))
	assert.Empty(t, lastRun("5m", job("5m", Active)))
	assert.Equal(t, failed("5m"), lastRun("7m", job("5m", Failed)))
	assert.Equal(t, failed("5m"), lastRun("8m"), "the job was deleted")
	assert.Equal(t, failed("5m"), lastRun("10m", job("5m", Failed), job("10m", Active)), "the next run has not ended")
	assert.Equal(t, "True RunSucceeded: a job completed at 2026-03-04T12:11:00Z", lastRun("12m", job("5m", Failed), job("10m", Succeeded)))
	assert.Equal(t, "True RunSucceeded: a job completed at 2026-03-04T12:11:00Z", lastRun("13m", job("5m", Failed)), "the job that succeeded was deleted")
	assert.Equal(t, failed("15m"), lastRun("17m", job("10m", Succeeded), job("15m", Failed)))
}

func TestAJobWhoseTimeCannotBeReadIsTold(t *testing.T) {
	cron := every5()
	edited := child(cron, after("-5m"), Succeeded)
	edited.Object.GetAnnotations()[v1beta1.ScheduledAtAnnotation] = "noon"
	p := Compute(Snapshot{Cron: cron, Children: []Child{edited, child(cron, noon, Succeeded)}, Now: after("1m")})
	require.Len(t, p.Waits, 1)
	assert.Equal(t, edited.Object.GetName(), p.Waits[0].Object)
	assert.Equal(t, `annotation apps.kruise.io/scheduled-at is "noon": it must be an RFC 3339 time`, p.Waits[0].Message)
	assert.Equal(t, metaTime(noon), p.Status(nil, action.Failures{}).LastScheduleTime)
}
