package pass

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clientevents "k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-project/flotilla/core/controllers/events"
	"github.com/flotilla-project/flotilla/core/controllers/execute"
	"github.com/flotilla-project/flotilla/core/controllers/later"
	"github.com/flotilla-project/flotilla/core/controllers/status"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/plan/refusals"
)

// world is a controller, its cache, and the server to which it writes.
type world struct {
	*testing.T

	controller *Controller
	clock      *clocktesting.FakeClock
	events     *clientevents.FakeRecorder

	wait      time.Duration // that the cache needs
	forgotten []types.NamespacedName

	answers map[string]int // HTTP codes by the last part of the path, 200 for others
	onWrite func()         // runs with each write
	mu      sync.Mutex
	writes  []string // the last parts of their paths
}

func givenWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, clock: clocktesting.NewFakeClock(time.Unix(0, 0)), events: clientevents.NewFakeRecorder(10000), answers: map[string]int{}, onWrite: func() {}}
	w.serve(w)
	return w
}

// serve has the controller work with another server.
func (w *world) serve(handler http.Handler) {
	server := httptest.NewServer(handler)
	w.Cleanup(server.Close)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	c, err := client.New(&rest.Config{Host: server.URL, QPS: -1}, client.Options{Scheme: clientgoscheme.Scheme, Mapper: mapper})
	require.NoError(w, err)
	memory := &refusals.Tracker{}
	executor, err := execute.New(execute.Options{
		Client: c, Live: c, Recorder: w, Metrics: prometheus.NewRegistry(), Controller: "test", Refusals: memory, Clock: w.clock,
	})
	require.NoError(w, err)
	w.controller = &Controller{
		Client: c, Live: c, Freshness: w, Refusals: memory, Executor: executor, Status: status.Writer{Client: c, Recorder: w},
		Events: events.NewRecorder(w.events, clientgoscheme.Scheme, w.clock), Clock: w.clock,
	}
}

// ServeHTTP answers as the API server.
func (w *world) ServeHTTP(answer http.ResponseWriter, r *http.Request) {
	part := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	answer.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodGet { // nobody else has written it
		_ = json.NewEncoder(answer).Encode(metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{Kind: "ReplicaSet", APIVersion: "apps/v1"}, ObjectMeta: metaOf(part),
		})
		return
	}
	w.mu.Lock()
	w.writes = append(w.writes, part)
	w.mu.Unlock()
	w.onWrite()
	if code := w.answers[part]; code != 0 {
		reason := map[int]metav1.StatusReason{
			http.StatusUnprocessableEntity: metav1.StatusReasonInvalid, http.StatusConflict: metav1.StatusReasonConflict,
		}[code]
		answer.WriteHeader(code)
		_ = json.NewEncoder(answer).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: "no",
		})
		return
	}
	_ = json.NewEncoder(answer).Encode(metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: part, UID: types.UID(part), ResourceVersion: "2"},
	})
}

func (w *world) Created(types.NamespacedName, client.Object)              {}
func (w *world) Written(types.NamespacedName, client.Object)              {}
func (w *world) Deleted(types.NamespacedName, client.Object)              {}
func (w *world) MaybeCreated(types.NamespacedName, client.Object)         {}
func (w *world) MaybeWritten(types.NamespacedName, client.Object)         {}
func (w *world) Wait(context.Context, types.NamespacedName) time.Duration { return w.wait }
func (w *world) Forget(name types.NamespacedName)                         { w.forgotten = append(w.forgotten, name) }

// told returns the events so far.
func (w *world) told() (all []string) {
	for len(w.events.Events) > 0 {
		all = append(all, <-w.events.Events)
	}
	return all
}

func request() ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "web"}}
}

func metaOf(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), ResourceVersion: "1"}
}

// pass writes a ConfigMap and then the status, with events for both and for somebody else's object.
func (w *world) pass(adapt ...func(*Pass)) Pass {
	owner, child := &appsv1.ReplicaSet{ObjectMeta: metaOf("web")}, &corev1.ConfigMap{ObjectMeta: metaOf("child")}
	p := Pass{Object: owner, Plan: action.Plan{
		Now:     w.clock.Now(),
		Notices: []action.Notice{{Type: corev1.EventTypeNormal, Reason: "Reported", WithStatus: true}},
	}}
	p.Plan.Refusals = w.controller.KnownRefusals(owner, nil, 0, w.clock.Now())
	p.Plan.Add(patch(child))
	p.Status = func(done action.Failures) client.Object {
		after := owner.DeepCopy()
		after.Status.Replicas = 1
		if done.UpdateError != "" {
			after.Status.Replicas = 2
		}
		return after
	}
	for _, f := range adapt {
		f(&p)
	}
	return p
}

func patch(o action.Object) action.Step {
	return action.Step{Name: "write", Actions: []action.Action{{
		Verb: action.PatchMetadata, Object: o, Event: &action.Event{Succeeded: "Wrote", Failed: "Failed"},
		Patches: []action.Patch{{Body: map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}}}},
	}}}
}

// What goes wrong in a pass has consequences that the documentation of the package lists.
func TestEachErrorHasItsConsequences(t *testing.T) {
	wrong := errors.New("not a number")
	for name, test := range map[string]struct {
		answers map[string]int
		adapt   func(*Pass)
		writes  []string
		events  []string // the first two words of each
		again   time.Duration
		err     string
	}{
		"none": {writes: []string{"child", "status"}, events: []string{"Normal Reported", "Normal Wrote"}},
		"the spec cannot be followed": {
			adapt:  func(p *Pass) { p.Err = wrong },
			writes: []string{"child", "status"}, events: []string{"Normal Reported", "Normal Wrote"}, err: "terminal error: not a number",
		},
		"the spec cannot be followed, and the plan wants another look": {
			adapt:  func(p *Pass) { p.Err = wrong; p.Plan.RequeueWithin(time.Minute) },
			writes: []string{"child", "status"}, events: []string{"Normal Reported", "Normal Wrote"}, again: time.Minute,
		},
		"a write is refused": {
			answers: map[string]int{"child": http.StatusUnprocessableEntity},
			writes:  []string{"child", "status"}, events: []string{"Warning Failed", "Normal Reported"}, again: time.Second,
		},
		"an object has changed": {
			answers: map[string]int{"child": http.StatusConflict},
			writes:  []string{"child", "status"}, events: []string{"Normal Reported"}, again: time.Second,
		},
		"a write fails": {
			answers: map[string]int{"child": http.StatusInternalServerError},
			writes:  []string{"child", "status"}, events: []string{"Warning Failed", "Normal Reported"}, err: "patch configmap child",
		},
		"a write fails, and the pace is steady": {
			answers: map[string]int{"child": http.StatusInternalServerError}, adapt: func(p *Pass) { p.SteadyPace = true },
			writes: []string{"child", "status"}, events: []string{"Warning Failed", "Normal Reported"}, again: time.Second,
		},
		"the object itself is written": {
			adapt:  func(p *Pass) { p.Plan.Add(patch(p.Object)) },
			writes: []string{"child", "web"}, events: []string{"Normal Wrote", "Normal Wrote"},
		},
		"the object itself has changed": {
			answers: map[string]int{"web": http.StatusConflict}, adapt: func(p *Pass) { p.Plan.Add(patch(p.Object)) },
			writes: []string{"child", "web"}, events: []string{"Normal Wrote"}, again: time.Second,
		},
		"the status is refused": {
			answers: map[string]int{"status": http.StatusUnprocessableEntity},
			writes:  []string{"child", "status"}, events: []string{"Normal Wrote"}, err: "patch status",
		},
		"the status meets another version": {
			answers: map[string]int{"status": http.StatusConflict},
			writes:  []string{"child", "status"}, events: []string{"Normal Wrote"}, again: time.Second,
		},
		"the status is left alone": {
			adapt:  func(p *Pass) { p.Status = func(action.Failures) client.Object { return nil } },
			writes: []string{"child"}, events: []string{"Normal Wrote"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := givenWorld(t)
			w.answers = test.answers
			adapt := test.adapt
			if adapt == nil {
				adapt = func(*Pass) {}
			}
			result, err := w.controller.Handle(t.Context(), request(), func(context.Context, types.NamespacedName) (Pass, error) {
				return w.pass(adapt), nil
			})
			if test.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, test.err)
				assert.Zero(t, result, "an error makes the queue forget when to look")
			}
			assert.Equal(t, test.again, result.RequeueAfter)
			assert.Equal(t, test.writes, w.writes)
			var told []string
			for _, e := range w.told() {
				words := strings.Fields(e)
				told = append(told, words[0]+" "+words[1])
			}
			assert.Equal(t, test.events, told)
			assert.Empty(t, w.forgotten)
		})
	}
}

// What cannot be read is not acted on.
func TestEachErrorOfReadingHasItsConsequences(t *testing.T) {
	unread := errors.New("no answer")
	for name, test := range map[string]struct {
		wait      time.Duration
		err       error
		want      error
		after     time.Duration
		looks     int
		forgotten []types.NamespacedName
	}{
		"the cache is behind": {wait: time.Second, after: time.Second},
		"the object is gone":  {err: apierrors.NewNotFound(schema.GroupResource{}, "web"), looks: 1, forgotten: []types.NamespacedName{request().NamespacedName, request().NamespacedName}},
		"something is unread": {err: unread, want: unread, looks: 1},
		"it is read again in a while": {
			err:   fmt.Errorf("read: %w", &later.Error{Err: unread, At: time.Unix(2, 0)}),
			after: 2 * time.Second, looks: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := givenWorld(t)
			w.wait = test.wait
			w.controller.AddMemories(w)
			looks := 0
			result, err := w.controller.Handle(t.Context(), request(), func(context.Context, types.NamespacedName) (Pass, error) {
				looks++
				return w.pass(), test.err
			})
			require.ErrorIs(t, err, test.want)
			assert.Equal(t, ctrl.Result{RequeueAfter: test.after}, result)
			assert.Equal(t, test.looks, looks)
			assert.Equal(t, test.forgotten, w.forgotten)
			assert.Empty(t, w.writes)
		})
	}
}

func TestARefusedStatusWaits(t *testing.T) {
	for _, code := range []int{http.StatusUnprocessableEntity, http.StatusInternalServerError, http.StatusConflict} {
		w := givenWorld(t)
		w.answers["status"] = code
		_, _ = w.controller.Run(t.Context(), w.pass())
		w.writes, w.answers["status"] = nil, 0
		w.told()

		result, err := w.controller.Run(t.Context(), w.pass())
		require.NoError(t, err)
		assert.Equal(t, time.Second, result.RequeueAfter)
		assert.Equal(t, []string{"child"}, w.writes)
		assert.Len(t, w.told(), 1, "the status is not told before it is written")

		w.clock.Step(time.Second)
		reported := 0
		_, err = w.controller.Run(t.Context(), w.pass(func(p *Pass) {
			p.After = func(_ context.Context, wrote bool) time.Duration {
				if wrote {
					reported++
				}
				return 0
			}
		}))
		require.NoError(t, err)
		assert.Equal(t, []string{"child", "child", "status"}, w.writes)
		assert.Equal(t, 1, reported)
	}
}

func TestAnEndedContextEndsThePass(t *testing.T) {
	w := givenWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	executed := 0
	result, err := w.controller.Run(ctx, w.pass(func(p *Pass) {
		p.Do = func(_ context.Context, execute func() progress.Result) progress.Result {
			done := execute()
			executed = len(done.Outcomes)
			cancel()
			return done
		}
		p.After = func(context.Context, bool) time.Duration {
			assert.Fail(t, "nothing else is begun")
			return 0
		}
	}))
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, reconcile.TerminalError(nil))
	assert.Zero(t, result)
	assert.Equal(t, 1, executed)
	assert.Equal(t, []string{"child"}, w.writes)
	assert.Len(t, w.told(), 1)
	assert.Empty(t, w.controller.KnownRefusals(w.pass().Object, nil, 0, w.clock.Now()), "nothing was refused")
}

// What is told elsewhere belongs to the status as much as what is told of the object, and work that may go wrong
// decides about nothing but the next look.
func TestPartsOfAPassAreAdded(t *testing.T) {
	w := givenWorld(t)
	other := &corev1.ConfigMap{ObjectMeta: metaOf("other")}
	run := func() ([]string, ctrl.Result) {
		result, _ := w.controller.Run(t.Context(), w.pass(func(p *Pass) {
			p.OtherNotices = []Notices{{Object: other, Events: []action.Notice{{Type: corev1.EventTypeWarning, Reason: "Elsewhere", WithStatus: true}}}}
			p.After = func(context.Context, bool) time.Duration { return 3 * time.Second }
		}))
		return w.told(), result
	}
	w.answers["status"] = http.StatusConflict
	told, result := run()
	assert.Len(t, told, 1)
	assert.Equal(t, time.Second, result.RequeueAfter)
	w.answers["status"] = 0
	w.clock.Step(time.Second)
	told, result = run()
	assert.Len(t, told, 3)
	assert.Equal(t, 3*time.Second, result.RequeueAfter)
}
