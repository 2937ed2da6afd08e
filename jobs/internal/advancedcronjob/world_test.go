package advancedcronjob

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/plan/refusals"
	"github.com/flotilla-project/flotilla/core/testing/seeds"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/advancedcronjob/plan"
	"github.com/flotilla-project/flotilla/jobs/internal/advancedcronjob/schedule"
)

// noon is a Wednesday.
var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

var errKilled = errors.New("the operator was killed")

// world is an AdvancedCronJob, its jobs, their controllers and a user, and the passes of operators that are killed
// between any two writes. The caches of an operator show each kind as it was at some time since the operator's own last
// write; those of a new operator show what was there when it began, and have yet to fill, or the cluster does not serve
// the kind of the jobs, or lets nobody read them.
type world struct {
	*testing.T
	*rand.Rand
	kind     *kind
	at       time.Time
	now      moment
	others   []client.Object // that an operator must leave alone
	history  []moment
	versions int
	refusing bool
	calm     bool

	floor     int // of the operator's views
	caches    *caches
	passes    *passes
	forbidden bool // why the operator waits, if it does
	memory    *refusals.Tracker

	states map[types.UID]plan.State // of the jobs, as they are
	ends   map[types.UID]time.Time
	made   map[int64]bool // times that jobs were made for
	tokens map[string]int // how many jobs were made for a token
	lost   int            // missed runs that have left the status
	writes int
	// uncounted is true if more runs were missed at a time than are counted.
	uncounted bool
	attempts  []time.Time // to create jobs
}

func newWorld(t *testing.T, r *rand.Rand) *world {
	t.Helper()
	w := &world{
		T: t, Rand: r, at: noon.Add(time.Second), kind: kinds()[r.IntN(3)],
		states: map[types.UID]plan.State{}, ends: map[types.UID]time.Time{}, made: map[int64]bool{}, tokens: map[string]int{},
	}
	w.now.cron = w.newCron("default", "cron")
	w.others = w.newOthers()
	w.commit()
	w.newOperator()
	return w
}

func (w *world) commit() { w.history = append(w.history, w.now) }

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

// operate runs one pass of the operator that leads.
func (w *world) operate() (again time.Duration) {
	if w.passes.Forbidden != nil && (w.calm || w.IntN(4) == 0) {
		w.begin() // the kind is served and may be read by now
	}
	view := w.look()
	pass, err := w.passes.Look(ctrl.LoggerInto(w.Context(), logr.Discard()), client.ObjectKeyFromObject(w.now.cron))
	if w.passes.Forbidden == nil && w.caches.filling != "" || w.caches.filling == v1beta1.AdvancedCronJobKind {
		require.ErrorIs(w, err, errFilling)
		w.caches.filling = ""
		return time.Second
	}
	require.NoError(w, err)
	require.NoError(w, pass.Err)
	require.Equal(w, w.now.cron.UID, pass.Object.GetUID())
	killed := false
	write := func(a *action.Action) progress.Outcome {
		if killed = killed || w.dies(); killed {
			return progress.OutcomeOf(errKilled)
		}
		o := w.write(a, view)
		killed = w.dies()
		return o
	}
	done := pass.Do(w.Context(), func() progress.Result {
		return progress.Run(pass.Plan.Steps, progress.InTurn(write, func() time.Time { return w.at }), progress.Options{
			Workload: memory.KeyOf(view), Generation: view.Generation, Refusals: w.memory,
		})
	})
	require.True(w, pass.SteadyPace, "an error puts the next pass off")
	if killed || w.dies() {
		w.newOperator()
		return 0
	}
	status := &pass.Status(done.Failures().WithDeferred(pass.Plan.Deferred)).(*v1beta1.AdvancedCronJob).Status
	for _, o := range done.Outcomes {
		if o.State == progress.Done && o.Action.Verb == action.Create {
			require.Equal(w, o.Object.GetUID(), status.Active[len(status.Active)-1].UID, "the status does not show the job that was made")
		}
	}
	w.report(view, status)
	w.floor = len(w.history) - 1
	pass.Plan.RequeueWithin(done.RetryAfter)
	return pass.Plan.RequeueAfter
}

func (w *world) dies() bool { return !w.calm && w.IntN(12) == 0 }

// report writes the status.
func (w *world) report(view *v1beta1.AdvancedCronJob, status *v1beta1.AdvancedCronJobStatus) {
	require.Equal(w, view.Generation, status.ObservedGeneration) // G4
	if equality.Semantic.DeepEqual(view.Status, *status) || view.ResourceVersion != w.now.cron.ResourceVersion {
		return
	}
	before := w.now.cron.Status
	require.False(w, plan.TimeOf(status.LastScheduleTime).Before(plan.TimeOf(before.LastScheduleTime)), "it never goes back")
	for _, run := range before.MissedRuns[:max(len(before.MissedRuns)-1, 0)] { // the last one may grow
		if !slices.ContainsFunc(status.MissedRuns, func(m v1beta1.MissedRun) bool { return m.ScheduledAt.Equal(&run.ScheduledAt) }) {
			w.lost += int(run.Count)
			w.uncounted = w.uncounted || run.Count >= schedule.MaxCounted
		}
	}
	w.writes++
	w.edit(func(cron *v1beta1.AdvancedCronJob) { cron.Status = *status })
}

// disturb lets jobs run and end, and others act.
func (w *world) disturb() {
	for _, job := range w.now.jobs {
		switch {
		case w.states[job.GetUID()] != plan.Active || w.IntN(3) > 0:
		case w.kind.child(job).Started.IsZero():
			w.change(job, w.start)
		default:
			w.end(job, []plan.State{plan.Succeeded, plan.Failed}[w.IntN(2)])
		}
	}
	for i, job := range w.now.jobs {
		if gone := job.GetDeletionTimestamp() != nil; (gone || !w.calm && w.recorded(job)) && w.IntN(6) == 0 {
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
		if !slices.ContainsFunc(w.now.jobs, func(job client.Object) bool {
			return w.states[job.GetUID()] == plan.Active || job.GetDeletionTimestamp() != nil
		}) {
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

	count := map[plan.State]int{}
	for _, job := range w.now.jobs {
		count[w.states[job.GetUID()]]++
	}
	spec, status := &w.now.cron.Spec, &w.now.cron.Status
	if spec.SuccessfulJobsHistoryLimit != nil {
		assert.LessOrEqual(w, count[plan.Succeeded], int(*spec.SuccessfulJobsHistoryLimit))
		assert.LessOrEqual(w, count[plan.Failed], int(*spec.FailedJobsHistoryLimit))
	}
	assert.Len(w, status.Active, count[plan.Active])
	assert.Equal(w, plan.ReasonAsScheduled, reason(status))
	w.judgeLastRun()
	assert.Equal(w, w.now.cron.Annotations[v1beta1.RunNowAnnotation], status.LastRunNow)
	due, told := int(w.at.Sub(noon)/time.Minute), len(w.made)+w.lost
	for _, run := range status.MissedRuns {
		told += int(run.Count)
		w.uncounted = w.uncounted || run.Count >= schedule.MaxCounted
	}
	assert.LessOrEqual(w, told, due, "%v", status.MissedRuns)
	assert.True(w, w.uncounted || told == due, "of %d runs %d were made or missed: %v", due, told, status.MissedRuns)
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
	w.begin()
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
	assert.Equal(t, plan.ReasonRefused, reason(&w.now.cron.Status))
	w.refusing = false
	over := w.at
	for len(w.now.jobs) == 0 && w.at.Sub(over) < 2*time.Minute {
		w.at = w.at.Add(min(w.operate(), time.Minute))
	}
	assert.LessOrEqual(t, w.attempts[len(w.attempts)-1].Sub(over), 31*time.Second)
	assert.Len(t, w.now.jobs, 1)
}
