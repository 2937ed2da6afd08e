package events_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/events"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
)

var env testenv.Environment

var logged testenv.Errors

func TestMain(m *testing.M) {
	logged.Capture()
	env.Run(m, testenv.Options{})
}

// sink remembers events as "Type Reason action note (related)".
type sink struct{ sent []string }

func (s *sink) Eventf(_, related runtime.Object, kind, reason, action, note string, args ...any) {
	text := fmt.Sprintf("%s %s %s ", kind, reason, action) + fmt.Sprintf(note, args...)
	if ref, ok := related.(*corev1.ObjectReference); ok {
		text += " (" + ref.Name + ref.ResourceVersion + ")"
	}
	s.sent = append(s.sent, text)
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "7"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "image"}}},
	}
}

func result(name string, state progress.State, told *action.Event) progress.Outcome {
	r := progress.Outcome{Action: &action.Action{Verb: action.Create, Object: pod(name), Event: told}, State: state}
	if state == progress.Done {
		r.Object = pod(name)
	} else {
		r.Err = errors.New("create pod " + name + ": 100% refused")
	}
	return r
}

func TestTellSendsWarningsFirst(t *testing.T) {
	told := &action.Event{Succeeded: "SuccessfulCreate", Note: "succeed to create pod %s", Failed: "FailedCreate"}
	outcome := &progress.Result{Outcomes: []progress.Outcome{
		result("done", progress.Done, told),
		result("quiet", progress.Done, nil),
		result("silent", progress.Done, &action.Event{Failed: "FailedCreate"}),
		result("stale", progress.Stale, told),
		result("blocked", progress.Blocked, told),
		result("failed", progress.Failed, told),
		result("begun", progress.Failed, &action.Event{Failed: "FailedCreate", FailedNote: "Error creating: "}),
	}}
	var got sink
	events.NewRecorder(&got, clientgoscheme.Scheme, clock.RealClock{}).Record(pod("owner"), []action.Notice{
		{Type: corev1.EventTypeNormal, Reason: "Note", Note: "something"},
		{Type: corev1.EventTypeWarning, Reason: "PodFailed", Note: "pod x failed", Related: pod("x")},
	}, outcome)
	assert.Equal(t, []string{
		"Warning PodFailed Reconcile pod x failed (x)",
		"Warning FailedCreate Create create pod blocked: 100% refused",
		"Warning FailedCreate Create create pod failed: 100% refused",
		"Warning FailedCreate Create Error creating: create pod begun: 100% refused",
		"Normal Note Reconcile something",
		"Normal SuccessfulCreate Create succeed to create pod %s (done)",
	}, got.sent)
}

func TestTellHasACapPerPass(t *testing.T) {
	outcome := &progress.Result{}
	for i := range 3 * events.PerPass {
		outcome.Outcomes = append(outcome.Outcomes, result(fmt.Sprint(i), progress.Done, &action.Event{Succeeded: "Created", Note: "n"}))
	}
	outcome.Outcomes = append(outcome.Outcomes, result("last", progress.Failed, &action.Event{Failed: "Failed"}))
	var got sink
	events.NewRecorder(&got, clientgoscheme.Scheme, clock.RealClock{}).Record(pod("owner"), nil, outcome)
	require.Len(t, got.sent, events.PerPass)
	assert.Contains(t, got.sent[0], "last")
}

func TestNoticesSayWhatWasDone(t *testing.T) {
	owner := &corev1.ObjectReference{Kind: "Pod", Name: "owner", ResourceVersion: "7"}
	var got sink
	events.NewRecorder(&got, clientgoscheme.Scheme, clock.RealClock{}).Record(owner, []action.Notice{
		{Type: corev1.EventTypeNormal, Reason: "Note", Action: "PullImage", Note: "something", Related: pod("x")},
	}, &progress.Result{})
	assert.Equal(t, []string{"Normal Note PullImage something (x)"}, got.sent)
	assert.Equal(t, "7", owner.ResourceVersion, "what is told of is left alone")
}

func TestEventsAreVisibleAsCoreEvents(t *testing.T) {
	ns, c, mgr := env.Namespace(t), env.Client(t), env.Manager(t)
	sink, err := events.Broadcast(mgr, "test-controller")
	require.NoError(t, err)
	env.Start(t, mgr)
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "owner"}}
	require.NoError(t, c.Create(t.Context(), owner))
	outcome := &progress.Result{}
	for _, name := range []string{"one", "two"} {
		made := pod(name)
		made.Namespace, made.ResourceVersion = ns, ""
		require.NoError(t, c.Create(t.Context(), made))
		r := result(name, progress.Done, &action.Event{Succeeded: "SuccessfulCreate", Note: "succeed to create pod " + name})
		r.Object = made
		outcome.Outcomes = append(outcome.Outcomes, r)
	}
	long := strings.Repeat("ü", 1000)
	notices := []action.Notice{{Type: corev1.EventTypeWarning, Reason: "Long", Note: long}}

	events.NewRecorder(sink, mgr.GetScheme(), clock.RealClock{}).Record(owner, notices, outcome)

	var list corev1.EventList
	await.Until(t, func(collect *assert.CollectT) {
		require.NoError(collect, c.List(t.Context(), &list, client.InNamespace(ns)))
		assert.Len(collect, list.Items, 3)
	})
	notes := map[string]string{}
	for _, e := range list.Items {
		assert.Equal(t, "ConfigMap", e.InvolvedObject.Kind)
		assert.Equal(t, "owner", e.InvolvedObject.Name)
		assert.Equal(t, owner.UID, e.InvolvedObject.UID)
		assert.Equal(t, "test-controller", e.ReportingController)
		related := ""
		if e.Related != nil {
			related = e.Related.Kind + " " + e.Related.Name
		}
		notes[e.Message] = e.Type + " " + e.Reason + " " + related
	}
	assert.Equal(t, map[string]string{
		"succeed to create pod one": "Normal SuccessfulCreate Pod one",
		"succeed to create pod two": "Normal SuccessfulCreate Pod two",
		long[:1024]:                 "Warning Long ",
	}, notes)
}

// A namespace that is going takes its events with it. That is no error of the operator's, whereas an event that
// is refused for another reason is.
func TestEventsOfNamespacesThatAreGoingAreNoErrors(t *testing.T) {
	env.Need(t)
	going, ns, c := env.Namespace(t), env.Namespace(t), env.Client(t)
	require.NoError(t, c.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: going}}))
	as, audit := env, env.Audit(t)
	as.Config = env.ConfigAs(t, "teller")
	mgr := as.Manager(t)
	sink, err := events.Broadcast(mgr, "test-controller")
	require.NoError(t, err)
	as.Start(t, mgr)
	tell := func(namespace, name, reason string) {
		owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		events.NewRecorder(sink, mgr.GetScheme(), clock.RealClock{}).Record(owner, []action.Notice{{Type: corev1.EventTypeWarning, Reason: reason, Note: "no"}}, &progress.Result{})
	}
	for _, namespace := range []string{going, "gone"} {
		for i := range 10 {
			tell(namespace, fmt.Sprintf("%s-%d", namespace, i), "FailedCreate")
		}
	}
	await.Until(t, func(check *assert.CollectT) { assert.GreaterOrEqual(check, len(audit.Requests(t, "teller")), 20) })
	tell(ns, "owner", strings.Repeat("TooLong", 40))
	await.Until(t, func(check *assert.CollectT) { assert.Len(check, logged.About(ns), 1) })
	assert.Empty(t, logged.About(going))
	assert.Empty(t, logged.About("gone-"))
}

// A rollout of many pods sends some events at once and then one a second. It keeps back no warning, and nothing of what
// the plan says.
func TestManyActionsHaveFewEvents(t *testing.T) {
	var got sink
	now := clocktesting.NewFakeClock(time.Now())
	recorder := events.NewRecorder(&got, clientgoscheme.Scheme, now)
	owner, other := pod("owner"), pod("other")
	owner.UID, other.UID = "1", "2"
	pass := func(owner *corev1.Pod, state progress.State, notices int) int {
		got.sent = nil
		told := &action.Event{Succeeded: "Updated", Note: "note", Failed: "Failed"}
		outcome := &progress.Result{Outcomes: slices.Repeat([]progress.Outcome{result("pod", state, told)}, events.PerPass-notices)}
		recorder.Record(owner, slices.Repeat([]action.Notice{{Type: corev1.EventTypeNormal, Reason: "Told", Note: "note"}}, notices), outcome)
		return len(got.sent)
	}
	assert.Equal(t, events.PerPass, pass(owner, progress.Done, 0))
	assert.Equal(t, 0, pass(owner, progress.Done, 0))
	assert.Equal(t, events.PerPass, pass(owner, progress.Failed, 0), "warnings")
	assert.Equal(t, 3, pass(owner, progress.Done, 3), "notices")
	assert.Equal(t, events.PerPass, pass(other, progress.Done, 0), "another owner")
	now.Step(5 * time.Second)
	assert.Equal(t, 2, pass(owner, progress.Done, 0), "what five seconds add, less what notices took")
	now.Step(time.Hour)
	assert.Equal(t, events.PerPass, pass(owner, progress.Done, 0))
	assert.Equal(t, events.PerPass, pass(owner, progress.Done, events.PerPass))
	assert.Equal(t, 0, pass(owner, progress.Done, events.PerPass))
}
