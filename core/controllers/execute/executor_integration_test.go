package execute_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/execute"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/plan/refusals"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
)

var env testenv.Environment

func TestMain(m *testing.M) { env.Run(m, testenv.Options{}) }

// world is an executor for an owner in a namespace of its own.
type world struct {
	client.Client
	*execute.Executor
	ns     string
	owner  *corev1.ConfigMap
	writes *writes
	metric *prometheus.Registry
	memory *refusals.Tracker
}

// writes is a recorder that remembers what it is told, such as "created one".
type writes struct {
	mu   sync.Mutex
	list []string
}

func (w *writes) put(what string, o client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, what+" "+o.GetName())
}

func (w *writes) Created(_ types.NamespacedName, o client.Object)      { w.put("created", o) }
func (w *writes) Written(_ types.NamespacedName, o client.Object)      { w.put("written", o) }
func (w *writes) Deleted(_ types.NamespacedName, o client.Object)      { w.put("deleted", o) }
func (w *writes) MaybeCreated(_ types.NamespacedName, o client.Object) { w.put("doubtful", o) }
func (w *writes) MaybeWritten(_ types.NamespacedName, o client.Object) {
	w.put("doubtful since "+o.GetResourceVersion(), o)
}

func newWorld(t testing.TB, adapt ...func(*rest.Config)) *world {
	t.Helper()
	w := &world{Client: env.Client(t), ns: env.Namespace(t), writes: &writes{}, metric: prometheus.NewRegistry(), memory: &refusals.Tracker{}}
	config := env.ConfigAs(t, "executor")
	for _, f := range adapt {
		f(config)
	}
	writer, err := client.New(config, client.Options{Scheme: env.Scheme})
	require.NoError(t, err)
	w.Executor, err = execute.New(execute.Options{
		Client: writer, Live: w.Client, Recorder: w.writes, Metrics: w.metric, Controller: "test", Refusals: w.memory,
		Pass: time.Hour, // a busy machine takes longer than the default
	})
	require.NoError(t, err)
	w.owner = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "owner"}}
	require.NoError(t, w.Create(t.Context(), w.owner))
	return w
}

func (w *world) pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: w.owner.UID, Controller: new(true),
		}}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "image:1"}}},
	}
}

func (w *world) existing(t testing.TB, name string) *corev1.Pod {
	t.Helper()
	p := w.pod(name)
	require.NoError(t, w.Create(t.Context(), p))
	return p
}

func (w *world) get(t testing.TB, o client.Object) error {
	t.Helper()
	return w.Get(t.Context(), client.ObjectKeyFromObject(o), o)
}

func step(actions ...action.Action) action.Step { return action.Step{Name: "test", Actions: actions} }

func create(o action.Object) action.Action {
	return action.Action{Verb: action.Create, Object: o, Independent: isPod(o)}
}

// isPod reports whether nothing builds on actions on the object, as plans have it.
func isPod(o action.Object) bool {
	_, is := o.(*corev1.Pod)
	return is
}

func label(o action.Object, value any) action.Action {
	return action.Action{Verb: action.PatchMetadata, Object: o, Independent: isPod(o), Patches: []action.Patch{{
		Body: map[string]any{"metadata": map[string]any{"labels": map[string]any{"label": value}}},
	}}}
}

func states(o progress.Result) []progress.State {
	var list []progress.State
	for _, r := range o.Outcomes {
		list = append(list, r.State)
	}
	return list
}

// What time has changed is not written, and the steps after it run.
func TestOutdatedActionsAreStale(t *testing.T) {
	w := newWorld(t)
	late, soon := w.existing(t, "late"), w.existing(t, "soon")
	one, other := label(late, "new"), label(soon, "new")
	one.Deadline, other.Deadline = time.Now().Add(-time.Second), time.Now().Add(time.Hour)

	out := w.Run(t.Context(), w.owner, []action.Step{step(one), step(other)})

	require.NoError(t, out.Err)
	assert.Equal(t, []progress.State{progress.Stale, progress.Done}, states(out))
	assert.Equal(t, time.Second, out.RetryAfter)
	assert.Equal(t, []string{"written soon"}, w.writes.list)
}

// hours is a clock that moves on by an hour whenever somebody looks at it.
type hours struct {
	clock.PassiveClock
	looks atomic.Int64
}

func (c *hours) Now() time.Time {
	return time.Unix(0, 0).Add(time.Duration(c.looks.Add(1)) * time.Hour)
}

func (c *hours) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// A dry run may take so long that its action expires.
func TestActionsOutdatedByTheirDryRunAreStale(t *testing.T) {
	w := newWorld(t)
	executor, err := execute.New(execute.Options{
		Client: w.Client, Live: w.Client, Recorder: w.writes, Metrics: w.metric, Controller: "test", Clock: &hours{},
	})
	require.NoError(t, err)
	a := label(w.existing(t, "one"), "new")
	a.DryRun, a.Deadline = true, time.Unix(0, 0).Add(90*time.Minute)

	out := executor.Run(t.Context(), w.owner, []action.Step{step(a)})

	require.NoError(t, out.Err)
	assert.Equal(t, []progress.State{progress.Stale}, states(out))
	assert.Empty(t, w.writes.list)
}

func TestCreateMakesWhatComesFirstFirst(t *testing.T) {
	w := newWorld(t)
	audit := env.Audit(t)
	first := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "first"}}
	already := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "owner"}}
	a := create(w.pod("one"))
	a.Prerequisites = []action.Object{already, first}

	out := w.Run(t.Context(), w.owner, []action.Step{step(a)})

	require.NoError(t, out.Err)
	assert.Equal(t, 1, out.Done(action.Create))
	assert.NotEmpty(t, out.Outcomes[0].Object.GetUID())
	assert.Empty(t, a.Object.GetUID(), "the plan's object was changed")
	assert.Equal(t, []string{"created first", "created one"}, w.writes.list)
	assert.Equal(t, map[string]int{"create configmaps": 2, "create pods": 1}, audit.Writes(t, "executor"))
}

func TestPatchesOfAnActionBuildOnEachOther(t *testing.T) {
	w := newWorld(t)
	p := w.existing(t, "one")
	change := action.NewPodChange(p, metav1.Now())
	change.SetCondition("Gate", corev1.ConditionTrue, "", "")
	change.SetImage("main", "image:2")
	change.SetLabel("label", "value")

	out := w.Run(t.Context(), w.owner, []action.Step{step(action.Action{
		Verb: action.UpdateInPlace, Object: p, Patches: change.Patches(),
	})})

	require.NoError(t, out.Err)
	assert.Equal(t, []progress.State{progress.Done}, states(out))
	planned := p.ResourceVersion
	require.NoError(t, w.get(t, p))
	assert.Equal(t, "image:2", p.Spec.Containers[0].Image)
	assert.Equal(t, "value", p.Labels["label"])
	assert.Equal(t, corev1.PodConditionType("Gate"), p.Status.Conditions[len(p.Status.Conditions)-1].Type)
	assert.NotEqual(t, planned, p.ResourceVersion)
	assert.Equal(t, p.ResourceVersion, out.Outcomes[0].Object.GetResourceVersion())
	assert.Equal(t, []string{"written one", "written one"}, w.writes.list)
}

func TestWritesMissAWorldThatMovedOn(t *testing.T) {
	w := newWorld(t)
	changed, replaced, gone, taken := w.existing(t, "changed"), w.existing(t, "replaced"), w.existing(t, "gone"), w.existing(t, "taken")
	planned := changed.DeepCopy()
	require.NoError(t, w.Patch(t.Context(), changed, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"label":"theirs"}}}`))))
	for _, p := range []*corev1.Pod{replaced, gone} {
		require.NoError(t, w.Delete(t.Context(), p.DeepCopy(), client.GracePeriodSeconds(0)))
	}
	w.existing(t, "replaced")
	tests := map[string]action.Action{
		"patch of a changed object":   label(planned, "ours"),
		"delete of a changed object":  {Verb: action.Delete, Object: planned},
		"patch of a replaced object":  label(replaced, "ours"),
		"delete of a replaced object": {Verb: action.Delete, Object: replaced},
		"patch of a gone object":      label(gone, "ours"),
		"delete of a gone object":     {Verb: action.Delete, Object: gone},
		"create of our own object":    create(w.pod(taken.Name)),
	}
	for name, a := range tests {
		t.Run(name, func(t *testing.T) {
			out := w.Run(t.Context(), w.owner, []action.Step{step(a)})
			require.NoError(t, out.Err)
			assert.Equal(t, []progress.State{progress.Stale}, states(out), "got %v", out.Outcomes[0].Err)
			assert.Equal(t, 1, out.Stale)
			assert.Equal(t, time.Second, out.RetryAfter)
		})
	}
	require.NoError(t, w.get(t, changed))
	assert.Equal(t, "theirs", changed.Labels["label"])
	assert.Equal(t, []string{"written taken"}, w.writes.list, "a pass would not wait for the object that the cache does not show")
}

func TestCreateWhereSomebodyElsesObjectStandsIsBlocked(t *testing.T) {
	w := newWorld(t)
	foreign := w.pod("taken")
	foreign.OwnerReferences[0].UID, foreign.OwnerReferences[0].Name = "other", "other"
	require.NoError(t, w.Create(t.Context(), foreign))
	out := w.Run(t.Context(), w.owner, []action.Step{{SlowStart: true, Actions: []action.Action{create(w.pod("taken")), create(w.pod("free"))}}})
	require.NoError(t, out.Err)
	assert.Equal(t, []progress.State{progress.Blocked, progress.Done}, states(out), "a name that is taken says nothing of other names")
	require.Len(t, out.Blocked, 1)
	assert.Equal(t, "create pod taken: it exists already and belongs to ConfigMap other", out.Blocked[0].Message)
}

// A dry run meets what the write itself would meet, and makes nothing that comes first.
func TestDryRunsOfCreatesFindTakenNames(t *testing.T) {
	w := newWorld(t)
	foreign := w.pod("taken")
	foreign.OwnerReferences = nil
	require.NoError(t, w.Create(t.Context(), foreign))
	first := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "first"}}
	a := create(w.pod("taken"))
	a.Prerequisites, a.DryRun = []action.Object{first}, true
	out := w.Run(t.Context(), w.owner, []action.Step{step(a)})
	require.NoError(t, out.Err)
	assert.Equal(t, []progress.State{progress.Blocked}, states(out))
	require.ErrorIs(t, out.Outcomes[0].Err, progress.ErrNameTaken)
	assert.Empty(t, w.writes.list)
}

// Our own object, which the cache does not show yet, holds up no others.
func TestNamesOfOwnObjectsSayNothingOfOtherNames(t *testing.T) {
	w := newWorld(t)
	w.existing(t, "taken")
	taken := create(w.pod("taken"))
	out := w.Run(t.Context(), w.owner, []action.Step{step(taken)})
	require.Equal(t, []progress.State{progress.Stale}, states(out))
	known := w.memory.For(memory.KeyOf(w.owner), refusals.Observation{Now: time.Now(), Generation: w.owner.Generation})[taken.Purpose()]
	assert.True(t, known.Targets["taken"].Transient)
	assert.False(t, known.Probing)
}

func TestDeleteRemovesWhatComesThen(t *testing.T) {
	w := newWorld(t)
	p, then := w.existing(t, "one"), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "then"}}
	missing := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "missing", UID: "x", ResourceVersion: "1"}}
	require.NoError(t, w.Create(t.Context(), then))
	out := w.Run(t.Context(), w.owner, []action.Step{step(action.Action{Verb: action.Delete, Object: p, Dependents: []action.Object{missing, then}})})
	require.NoError(t, out.Err)
	assert.Equal(t, []progress.State{progress.Done}, states(out))
	assert.Equal(t, []string{"deleted one", "deleted then"}, w.writes.list)
	assert.Error(t, w.get(t, then))
}

func TestAnActionSaysWhatBecomesOfOwnedObjects(t *testing.T) {
	w := newWorld(t)
	p := w.existing(t, "one")
	out := w.Run(t.Context(), w.owner, []action.Step{step(action.Action{
		Verb: action.Delete, Object: p, Propagation: metav1.DeletePropagationForeground,
	})})
	require.NoError(t, out.Err)
	require.NoError(t, w.get(t, p))
	assert.Equal(t, []string{metav1.FinalizerDeleteDependents}, p.GetFinalizers())
}

func TestAWriteThatChangesNothingIsCounted(t *testing.T) {
	w := newWorld(t)
	p := w.existing(t, "one")
	out := w.Run(t.Context(), w.owner, []action.Step{step(label(p, nil))})
	require.NoError(t, out.Err)
	assert.Equal(t, []string{"PatchMetadata Done 1", "1"}, counted(t, w))
}

func TestActionsAreCountedByHowTheyEnded(t *testing.T) {
	w := newWorld(t)
	there, gone := w.existing(t, "there"), w.existing(t, "gone")
	require.NoError(t, w.Delete(t.Context(), gone.DeepCopy()))
	w.writes.list = nil
	steps := []action.Step{step(label(there, "a"), label(gone, "a"), create(w.pod("new")))}
	out := w.Run(t.Context(), w.owner, steps)
	require.NoError(t, out.Err)
	assert.Equal(t, []string{"Create Done 1", "PatchMetadata Done 1", "PatchMetadata Stale 1", "0"}, counted(t, w))
}

// counted returns the actions by their labels, and at the end the writes that changed nothing.
func counted(t *testing.T, w *world) (all []string) {
	t.Helper()
	families, err := w.metric.Gather()
	require.NoError(t, err)
	require.Len(t, families, 2)
	assert.Equal(t, "flotilla_actions_total", families[0].GetName())
	assert.Equal(t, "flotilla_noop_writes_total", families[1].GetName())
	for _, m := range families[0].GetMetric() {
		labels := m.GetLabel() // action, controller, result
		all = append(all, fmt.Sprintf("%s %s %g", labels[0].GetValue(), labels[2].GetValue(), m.GetCounter().GetValue()))
	}
	return append(all, fmt.Sprint(families[1].GetMetric()[0].GetCounter().GetValue()))
}

func TestOnlyALivingOwnerAdopts(t *testing.T) {
	for name, test := range map[string]struct {
		change func(owner *corev1.ConfigMap)
		want   progress.State
	}{
		"living":   {change: func(*corev1.ConfigMap) {}, want: progress.Done},
		"replaced": {change: func(o *corev1.ConfigMap) { o.UID = "former" }, want: progress.Stale},
		"gone":     {change: func(o *corev1.ConfigMap) { o.Name = "gone" }, want: progress.Stale},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			orphan := w.pod("orphan")
			orphan.OwnerReferences = nil
			require.NoError(t, w.Create(t.Context(), orphan))
			adopt := label(orphan, "adopted")
			adopt.Verb = action.Adopt
			test.change(w.owner)
			out := w.Run(t.Context(), w.owner, []action.Step{step(adopt)})
			require.NoError(t, out.Err)
			assert.Equal(t, []progress.State{test.want}, states(out))
		})
	}
}

func TestNamespaceThatEndsEndsThePlanQuietly(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns}}))
	out := w.Run(t.Context(), w.owner, []action.Step{step(create(w.pod("one"))), step(create(w.pod("two")))})
	require.NoError(t, out.Err)
	assert.Equal(t, []progress.State{progress.Stale}, states(out))
	assert.True(t, out.Incomplete)
}

func TestLackOfPermissionIsAnErrorThatEndsThePlan(t *testing.T) {
	w := newWorld(t, func(c *rest.Config) { c.Impersonate.UserName = "nobody" })
	out := w.Run(t.Context(), w.owner, []action.Step{step(create(w.pod("one"))), step(create(w.pod("two")))})
	require.ErrorContains(t, out.Err, `create pod one: pods is forbidden: User "nobody" cannot create resource`)
	assert.Equal(t, []progress.State{progress.Failed}, states(out))
	assert.True(t, out.Incomplete)
}

func TestRefusedPodDoesNotKeepTheNextStepsBack(t *testing.T) {
	w := newWorld(t)
	good, invalid := w.existing(t, "good"), w.existing(t, "invalid")
	out := w.Run(t.Context(), w.owner, []action.Step{step(label(invalid, "not a label")), step(label(good, "fine"))})
	require.NoError(t, out.Err)
	assert.Equal(t, []progress.State{progress.Blocked, progress.Done}, states(out))
	assert.Equal(t, time.Second, out.RetryAfter)
	assert.Contains(t, out.Blocked[0].Message, "not a label")
	assert.False(t, out.Incomplete)
}

func TestEndedContextEndsThePlanWithAnError(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out := w.Run(ctx, w.owner, []action.Step{step(create(w.pod("one")))})
	require.ErrorIs(t, out.Err, context.Canceled)
	assert.True(t, out.Incomplete)
	assert.Empty(t, out.Outcomes)
}

func BenchmarkCreate(b *testing.B) {
	const pods = 500
	for _, parallelism := range []int{8, 16, 32, 64} {
		b.Run(strconv.Itoa(parallelism), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				w := newWorld(b)
				writer, err := client.New(env.ConfigAs(b, "executor"), client.Options{Scheme: env.Scheme})
				require.NoError(b, err)
				executor, err := execute.New(execute.Options{
					Client: writer, Live: w.Client, Recorder: w.writes, Metrics: w.metric, Parallelism: parallelism,
				})
				require.NoError(b, err)
				s := action.Step{SlowStart: true}
				for i := range pods {
					s.Actions = append(s.Actions, create(w.pod("pod-"+strconv.Itoa(i))))
				}
				b.StartTimer()
				out := executor.Run(b.Context(), w.owner, []action.Step{s})
				require.NoError(b, out.Err)
				require.Equal(b, pods, out.Done(action.Create))
			}
			b.ReportMetric(float64(pods)*float64(b.N)/b.Elapsed().Seconds(), "pods/s")
		})
	}
}

// A pass begins no write when its time is up, and the next one goes on: nothing is written twice or left out.
func TestAPassEndsInTime(t *testing.T) {
	w := newWorld(t)
	hurried, err := execute.New(execute.Options{
		Client: w.Client, Live: w.Client, Recorder: w.writes, Metrics: w.metric, Controller: "test", Pass: time.Nanosecond,
	})
	require.NoError(t, err)
	all := []action.Action{create(w.pod("a")), create(w.pod("b")), create(w.pod("c"))}
	for i := range all {
		out := hurried.Run(t.Context(), w.owner, []action.Step{step(all[i:]...)})
		require.NoError(t, out.Err)
		assert.Len(t, out.Outcomes, 1)
		assert.Equal(t, i < len(all)-1, out.Spent)
	}
	assert.Equal(t, []string{"created a", "created b", "created c"}, w.writes.list)
}

// A pass begins no write once the owner is edited, and the next one plans for the new spec.
func TestAnEditEndsThePass(t *testing.T) {
	w, edited := newWorld(t), false
	executor, err := execute.New(execute.Options{
		Client: w.Client, Live: w.Client, Recorder: w.writes, Metrics: w.metric, Controller: "test", Pass: time.Hour, Parallelism: 1,
		Edited: func(owner client.Object) bool { return edited && owner == w.owner },
	})
	require.NoError(t, err)
	all := []action.Action{create(w.pod("a")), create(w.pod("b")), create(w.pod("c")), create(w.pod("d"))}
	out := executor.Run(t.Context(), w.owner, []action.Step{step(all[:2]...)})
	assert.Len(t, out.Outcomes, 2)
	assert.False(t, out.Spent)
	edited = true
	out = executor.Run(t.Context(), w.owner, []action.Step{step(all[2:]...)})
	require.NoError(t, out.Err)
	assert.Len(t, out.Outcomes, 1, "one action is begun in any case")
	assert.True(t, out.Spent)
	assert.True(t, executor.Edited(w.owner))
}
