package plan

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/plan/refusals"
	"github.com/flotilla-project/flotilla/core/testing/seeds"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/advancedcronjob/schedule"
)

// world is an AdvancedCronJob, its jobs, their controllers and a user, and managers that are killed between any two
// writes. A manager sees the world as it was at some time since its own last write; a new one sees what was there when
// it began.
type world struct {
	*testing.T
	*rand.Rand
	at       time.Time
	now      moment
	history  []moment
	versions int
	refusing bool
	calm     bool

	floor  int // of the manager's views
	memory *refusals.Tracker
	made   map[int64]bool // times that jobs were made for
	tokens map[string]int // how many jobs were made for a token
	lost   int            // missed runs that have left the status
	writes int
	// uncounted is true if more runs were missed at a time than are counted.
	uncounted bool
	attempts  []time.Time // to create jobs
}

// moment is the world as a list of the server would show it.
type moment struct {
	cron     *v1beta1.AdvancedCronJob
	children []Child
}

var anyJob = schema.GroupResource{Group: "batch", Resource: "jobs"}

func newWorld(t *testing.T, r *rand.Rand) *world {
	t.Helper()
	cron := every5()
	cron.Spec.Schedule, cron.Status, cron.Annotations = "* * * * *", v1beta1.AdvancedCronJobStatus{}, map[string]string{}
	cron.CreationTimestamp, cron.ResourceVersion = metav1.NewTime(noon), "1"
	w := &world{
		T: t, Rand: r, at: noon.Add(time.Second), now: moment{cron: cron}, memory: &refusals.Tracker{},
		made: map[int64]bool{}, tokens: map[string]int{},
	}
	w.commit()
	return w
}

// version returns the next resourceVersion.
func (w *world) version() string {
	w.versions++
	return strconv.Itoa(w.versions)
}

func (w *world) commit() {
	w.history = append(w.history, moment{w.now.cron, slices.Clone(w.now.children)})
}

// edit changes the AdvancedCronJob.
func (w *world) edit(change func(*v1beta1.AdvancedCronJob)) {
	w.now.cron = w.now.cron.DeepCopy()
	change(w.now.cron)
	w.now.cron.ResourceVersion = w.version()
	w.commit()
}

func (w *world) editSpec(change func(*v1beta1.AdvancedCronJobSpec)) {
	w.edit(func(cron *v1beta1.AdvancedCronJob) {
		cron.Generation++
		change(&cron.Spec)
	})
}

// change changes a job.
func (w *world) change(i int, change func(*Child)) {
	c := w.now.children[i]
	c.Object = c.Object.DeepCopyObject().(action.Object)
	c.Object.SetResourceVersion(w.version())
	change(&c)
	w.now.children[i] = c
	w.commit()
}

func (w *world) remove(i int) {
	w.now.children = slices.Delete(slices.Clone(w.now.children), i, i+1)
	w.commit()
}

func (w *world) find(name string) int {
	return slices.IndexFunc(w.now.children, func(c Child) bool { return c.Object.GetName() == name })
}

// operate runs one pass of the manager that leads.
func (w *world) operate() (again time.Duration) {
	view := w.history[len(w.history)-1]
	if !w.calm {
		view = w.history[w.floor+w.IntN(len(w.history)-w.floor)]
	}
	key := memory.KeyOf(view.cron)
	known := w.memory.For(key, refusals.Observation{Now: w.at, Generation: view.cron.Generation})
	p := Compute(Snapshot{Cron: view.cron, Children: view.children, Refusals: known, Now: w.at})
	require.NoError(w, p.Err)
	var made []Child
	killed := false
	write := func(a *action.Action) progress.Outcome {
		if killed = killed || w.dies(); killed {
			return progress.OutcomeOf(errors.New("killed"))
		}
		o := w.write(a, view)
		killed = w.dies()
		return o
	}
	done := progress.Run(p.Steps, progress.InTurn(write, func() time.Time { return w.at }), progress.Options{
		Workload: key, Generation: view.cron.Generation, Refusals: w.memory,
	})
	for _, o := range done.Outcomes {
		if o.State == progress.Done && o.Action.Verb == action.Create {
			made = append(made, Child{Object: o.Object, Kind: "Job", APIVersion: "batch/v1", State: Active})
		}
	}
	if killed || w.dies() {
		w.memory, w.floor = &refusals.Tracker{}, len(w.history)-1
		return 0
	}
	w.report(view, p.Status(made, done.Failures().WithDeferred(p.Deferred)))
	w.floor = len(w.history) - 1
	p.RequeueWithin(done.RetryAfter)
	return p.RequeueAfter
}

func (w *world) dies() bool { return !w.calm && w.IntN(12) == 0 }

// report writes the status.
func (w *world) report(view moment, status *v1beta1.AdvancedCronJobStatus) {
	require.Equal(w, view.cron.Generation, status.ObservedGeneration) // G4
	if equality.Semantic.DeepEqual(view.cron.Status, *status) || view.cron.ResourceVersion != w.now.cron.ResourceVersion {
		return
	}
	before := w.now.cron.Status
	require.False(w, TimeOf(status.LastScheduleTime).Before(TimeOf(before.LastScheduleTime)), "it never goes back")
	for _, run := range before.MissedRuns[:max(len(before.MissedRuns)-1, 0)] { // the last one may grow
		if !slices.ContainsFunc(status.MissedRuns, func(m v1beta1.MissedRun) bool { return m.ScheduledAt.Equal(&run.ScheduledAt) }) {
			w.lost += int(run.Count)
			w.uncounted = w.uncounted || run.Count >= schedule.MaxCounted
		}
	}
	w.writes++
	w.edit(func(cron *v1beta1.AdvancedCronJob) { cron.Status = *status })
}

// write carries out one action as the server does.
func (w *world) write(a *action.Action, view moment) progress.Outcome {
	name := a.Object.GetName()
	i := w.find(name)
	if a.Verb == action.Delete {
		switch {
		case i < 0 || w.now.children[i].Object.GetUID() != a.Object.GetUID():
			return progress.OutcomeOf(apierrors.NewNotFound(anyJob, name))
		case w.now.children[i].Object.GetResourceVersion() != a.Object.GetResourceVersion():
			return progress.OutcomeOf(apierrors.NewConflict(anyJob, name, errors.New("changed")))
		case w.refusing:
			return progress.OutcomeOf(apierrors.NewForbidden(anyJob, name, errors.New("no")))
		}
		w.writes++
		if w.IntN(3) == 0 {
			w.change(i, func(c *Child) { c.Object.SetDeletionTimestamp(new(metav1.NewTime(w.at))) })
		} else {
			w.remove(i)
		}
		return progress.Outcome{State: progress.Done}
	}
	require.Equal(w, action.Create, a.Verb)
	w.attempts = append(w.attempts, w.at)
	switch {
	case w.refusing:
		return progress.OutcomeOf(apierrors.NewForbidden(anyJob, name, errors.New("exceeded quota")))
	case i >= 0:
		return progress.NameTaken("create", apierrors.NewAlreadyExists(anyJob, name), w.now.children[i].Object, "cron")
	}
	w.judge(a, view.cron)
	w.writes++
	job := a.Object.(*batchv1.Job).DeepCopy()
	job.ResourceVersion = w.version()
	job.UID = types.UID("job" + job.ResourceVersion)
	w.now.children = append(slices.Clone(w.now.children), Child{Object: job, Kind: "Job", APIVersion: "batch/v1", State: Active})
	w.commit()
	return progress.Outcome{State: progress.Done, Object: job}
}

// judge checks what must hold when a job is made: I-ACJ-1, 2, 3 and 5.
func (w *world) judge(a *action.Action, cron *v1beta1.AdvancedCronJob) {
	require.False(w, cron.Spec.Paused != nil && *cron.Spec.Paused, "it is paused")
	for _, c := range w.now.children {
		if c.State != Active {
			continue
		}
		require.NotEqual(w, v1beta1.ForbidConcurrent, cron.Spec.ConcurrencyPolicy, "%s runs", c.Object.GetName())
		require.False(w, cron.Spec.ConcurrencyPolicy == v1beta1.ReplaceConcurrent && c.Object.GetDeletionTimestamp() == nil, "%s was not replaced", c.Object.GetName())
	}
	if token := a.Object.GetAnnotations()[v1beta1.RunNowAnnotation]; token != "" {
		w.tokens[token]++
		require.Equal(w, 1, w.tokens[token], "a token is followed once")
		return
	}
	at := scheduledAt(a.Object)
	require.False(w, w.made[at.Unix()], "%s has a job", at)
	w.made[at.Unix()] = true
	late := w.at.Sub(at)
	require.True(w, late >= 0 && late < time.Minute+time.Nanosecond, "only the last run begins")
	if d := cron.Spec.StartingDeadlineSeconds; d != nil {
		require.LessOrEqual(w, late, time.Duration(*d)*time.Second)
	}
}

// disturb lets jobs run and end, and others act.
func (w *world) disturb() {
	for i := range w.now.children {
		switch c := w.now.children[i]; {
		case c.State != Active || w.IntN(3) > 0:
		case c.Started.IsZero():
			w.change(i, func(c *Child) { c.Started = w.at })
		default:
			state := []State{Succeeded, Failed}[w.IntN(2)]
			w.change(i, func(c *Child) { c.State, c.Ended = state, w.at })
		}
	}
	for i := range w.now.children {
		c := &w.now.children[i]
		p := pass{Snapshot: Snapshot{Cron: w.now.cron}}
		if gone := c.Object.GetDeletionTimestamp() != nil; (gone || !w.calm && p.recorded(c)) && w.IntN(6) == 0 {
			w.remove(i) // a finalizer is removed, a job's time to live is over, a user deletes it
			break
		}
	}
	if w.calm {
		return
	}
	switch w.IntN(14) {
	case 0:
		w.editSpec(func(spec *v1beta1.AdvancedCronJobSpec) {
			spec.ConcurrencyPolicy = []v1beta1.ConcurrencyPolicy{v1beta1.AllowConcurrent, v1beta1.ForbidConcurrent, v1beta1.ReplaceConcurrent}[w.IntN(3)]
		})
	case 1:
		w.editSpec(func(spec *v1beta1.AdvancedCronJobSpec) { spec.Paused = new(w.IntN(2) == 0) })
	case 2:
		w.editSpec(func(spec *v1beta1.AdvancedCronJobSpec) { spec.StartingDeadlineSeconds = new(int64(w.IntN(90))) })
	case 3:
		w.editSpec(func(spec *v1beta1.AdvancedCronJobSpec) {
			spec.SuccessfulJobsHistoryLimit, spec.FailedJobsHistoryLimit = new(int32(w.IntN(3))), new(int32(w.IntN(3)))
		})
	case 4:
		w.edit(func(cron *v1beta1.AdvancedCronJob) {
			cron.Annotations = map[string]string{v1beta1.RunNowAnnotation: fmt.Sprintf("t%d", w.versions)}
		})
	case 5, 6:
		w.refusing = w.IntN(2) == 0
	}
}

// settle lets the world come to rest and checks what must hold then.
func (w *world) settle() {
	w.calm, w.refusing, w.floor = true, false, len(w.history)-1
	w.editSpec(func(spec *v1beta1.AdvancedCronJobSpec) { spec.Paused, spec.StartingDeadlineSeconds = nil, nil })
	for range 200 {
		w.disturb()
		w.operate()
		if !slices.ContainsFunc(w.now.children, func(c Child) bool { return c.State == Active || c.Object.GetDeletionTimestamp() != nil }) {
			w.at = w.at.Add(time.Second)
		}
		if w.at.Second() == 59 {
			break
		}
	}
	w.at = w.at.Add(31 * time.Second) // after all pauses
	for range 100 {
		w.disturb()
		w.operate()
	}
	writes := w.writes
	for range 5 {
		w.operate()
	}
	assert.Equal(w, writes, w.writes, "G5: at rest nothing is written")

	count := map[State]int{}
	for _, c := range w.now.children {
		count[c.State]++
	}
	spec, status := &w.now.cron.Spec, &w.now.cron.Status
	if spec.SuccessfulJobsHistoryLimit != nil {
		assert.LessOrEqual(w, count[Succeeded], int(*spec.SuccessfulJobsHistoryLimit))
		assert.LessOrEqual(w, count[Failed], int(*spec.FailedJobsHistoryLimit))
	}
	assert.Len(w, status.Active, count[Active])
	assert.Equal(w, ReasonAsScheduled, reason(status))
	assert.Equal(w, w.now.cron.Annotations[v1beta1.RunNowAnnotation], status.LastRunNow)
	due, told := int(w.at.Sub(noon)/time.Minute), len(w.made)+w.lost
	for _, run := range status.MissedRuns {
		told += int(run.Count)
		w.uncounted = w.uncounted || run.Count >= schedule.MaxCounted
	}
	assert.LessOrEqual(w, told, due, "%v", missed(status))
	assert.True(w, w.uncounted || told == due, "of %d runs %d were made or missed: %v", due, told, missed(status))
}

func TestRandomWorldsKeepTheInvariants(t *testing.T) {
	seeds.Each(t, 600, func(t *testing.T, seed uint64) {
		t.Helper()
		w := newWorld(t, rand.New(rand.NewPCG(seed, 1)))
		for range 80 {
			w.at = w.at.Add(time.Duration(w.IntN(30)) * time.Second)
			if w.IntN(20) == 0 {
				w.at = w.at.Add(time.Duration(w.IntN(20)) * time.Minute)
			}
			w.disturb()
			w.operate()
		}
		w.settle()
	})
}

// What is refused for ever is asked for seldom, and made soon after.
func TestRefusedJobsAreAskedForSeldom(t *testing.T) {
	w := newWorld(t, rand.New(rand.NewPCG(1, 1)))
	w.calm, w.refusing = true, true
	w.now.cron.Spec.Schedule = "@yearly"
	w.edit(func(cron *v1beta1.AdvancedCronJob) {
		cron.Annotations = map[string]string{v1beta1.RunNowAnnotation: "t"}
	})
	began := w.at
	for w.at.Sub(began) < 10*time.Minute {
		again := w.operate()
		w.at = w.at.Add(min(again, time.Minute))
	}
	count := func(from, until time.Duration) (n int) {
		for _, at := range w.attempts {
			if d := at.Sub(began); d >= from && d < until {
				n++
			}
		}
		return n
	}
	assert.LessOrEqual(t, count(0, 10*time.Second), 10)
	assert.GreaterOrEqual(t, count(0, 10*time.Second), 3)
	assert.LessOrEqual(t, count(5*time.Minute, 10*time.Minute), 11)
	assert.Equal(t, ReasonRefused, reason(&w.now.cron.Status))
	w.refusing = false
	over := w.at
	for len(w.now.children) == 0 && w.at.Sub(over) < 2*time.Minute {
		w.at = w.at.Add(min(w.operate(), time.Minute))
	}
	assert.LessOrEqual(t, w.attempts[len(w.attempts)-1].Sub(over), 31*time.Second)
	assert.Len(t, w.now.children, 1)
}
