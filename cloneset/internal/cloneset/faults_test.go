package cloneset_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/gen"
	"github.com/flotilla-project/flotilla/core/podstate"
	"github.com/flotilla-project/flotilla/core/simnodes"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

var errCut = errors.New("the connection is cut")

// An operator that is killed in the middle of whatever it does leaves a world from which the next one
// arrives where an undisturbed one does, with the same pods and within the same limits.
func TestKilledOperatorsAreSucceeded(t *testing.T) {
	givenNodes(t, simnodes.Options{Bind: true})
	var undisturbed []string
	require.True(t, t.Run("undisturbed", func(t *testing.T) { undisturbed = threeRollouts(t) }))
	require.True(t, t.Run("killed", func(t *testing.T) {
		assert.Equal(t, undisturbed, threeRollouts(t, 1, 2, 4))
	}))
}

// threeRollouts are a scale-up, an update in place and one by recreation, and what each of them ends
// with. During each of them operators are killed, one after each of the numbers of writes.
func threeRollouts(t *testing.T, killAfter ...int64) (ends []string) {
	t.Helper()
	const replicas, maxUnavailable = 4, 2
	c := env.Client(t)
	set := newSet(env.Namespace(t), replicas, v1beta1.InPlaceIfPossible, maxUnavailable)
	rollout := func(name string, ready int, begin func()) {
		history := recordPods(t, set.Namespace)
		begin()
		for _, writes := range killAfter {
			require.True(t, t.Run(fmt.Sprintf("%s killed after write %d", name, writes), func(t *testing.T) {
				killed(t, set.Namespace, writes)
			}))
		}
		require.True(t, t.Run(name, func(t *testing.T) {
			startController(t, set.Namespace)
			settles(t, c, set)
		}))
		history.replay(t, func(pods []*corev1.Pod) {
			active, available := countPods(pods)
			assert.LessOrEqual(t, active, replicas)
			assert.GreaterOrEqual(t, available, ready)
		})
		ends = append(ends, end(t, c, set))
	}
	rollout("scale-up", 0, func() { require.NoError(t, c.Create(t.Context(), set)) })
	before := identities(podsOf(t, c, set))
	rollout("in place", replicas-maxUnavailable, func() { edit(t, c, set, image("app:2")) })
	assert.Equal(t, before, identities(podsOf(t, c, set)))
	rollout("recreation", replicas-maxUnavailable, func() { edit(t, c, set, argument("new")) })
	return ends
}

// killed runs an operator whose requests all fail from its n-th write on, and returns when it has
// made that one.
func killed(t *testing.T, namespace string, n int64) {
	t.Helper()
	var writes atomic.Int64
	dead := make(chan struct{})
	startControllerOver(t, namespace, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if isClosed(dead) {
			return nil, errCut
		}
		if !isWrite(r) {
			return next.RoundTrip(r)
		}
		number := writes.Add(1)
		if number > n {
			return nil, errCut
		}
		response, err := next.RoundTrip(r)
		if number == n {
			close(dead)
		}
		return response, err
	})
	select {
	case <-dead:
	case <-time.After(patience):
		t.Fatalf("only %d writes, not %d", writes.Load(), n)
	}
}

// Writes that are refused, that fail, and that are done though their answer is lost, delay a rollout
// and change nothing else: no pod too many at any time, and in the end no write at all.
func TestFailingRequestsDelayOnly(t *testing.T) {
	const replicas, maxUnavailable, maxSurge = 5, 2, 1
	givenNodes(t, simnodes.Options{Bind: true})
	c := env.Client(t)
	set := newSet(env.Namespace(t), replicas, v1beta1.InPlaceIfPossible, maxUnavailable)
	set.Spec.UpdateStrategy.RollingUpdate.MaxSurge = new(intstr.FromInt32(maxSurge))
	history := recordPods(t, set.Namespace)
	met := startFailing(t, set.Namespace, 1)
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	history.replay(t, atMost(t, replicas))
	history = recordPods(t, set.Namespace)
	for _, next := range []func(*v1beta1.CloneSet){image("app:2"), argument("new")} {
		edit(t, c, set, next)
		settles(t, c, set)
	}
	for _, f := range []fault{conflict, tooMany, failure, answerLost} {
		assert.Positive(t, met()[f], f)
	}
	history.replay(t, atMost(t, replicas+maxSurge))
	assertWanted(t, c, set)
	assertCalm(t, c, set)
}

func atMost(t *testing.T, limit int) func([]*corev1.Pod) {
	t.Helper()
	return func(pods []*corev1.Pod) {
		active, _ := countPods(pods)
		assert.LessOrEqual(t, active, limit)
	}
}

// fault is what happens to a write.
type fault string

const (
	none        fault = ""
	conflict    fault = "conflict"
	tooMany     fault = "too many requests"
	failure     fault = "internal error"
	answerLost  fault = "answer lost"
	shakyWrites       = 40 // after so many the server has recovered
)

// startFailing starts an operator of whose first writes some fail: which ones, the seed says, except
// that the answer to the first pod is always lost. The pods' watch is late then: a plan that takes the write
// for undone would come before the event. It returns what tells how often each fault was met so far.
func startFailing(t *testing.T, namespace string, seed uint64) (met func() map[fault]int) {
	t.Helper()
	ahead := slices.Concat(slices.Repeat([]fault{conflict, failure, answerLost}, 3), []fault{tooMany})
	ahead = append(ahead, make([]fault, shakyWrites-len(ahead))...)
	rng := rand.New(rand.NewPCG(seed, 0))
	rng.Shuffle(len(ahead), func(i, j int) { ahead[i], ahead[j] = ahead[j], ahead[i] })
	ahead = append([]fault{none, answerLost}, ahead...) // the revision, the first pod
	var mu sync.Mutex
	var late atomic.Int64
	count := map[fault]int{}
	draw := func() fault {
		mu.Lock()
		defer mu.Unlock()
		if len(ahead) == 0 {
			return none
		}
		next := ahead[0]
		ahead = ahead[1:]
		count[next]++
		return next
	}
	startControllerOver(t, namespace, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if !isWrite(r) {
			response, err := next.RoundTrip(r)
			if err == nil && isPodWatch(r) {
				response.Body = lateBody{response.Body, &late}
			}
			return response, err
		}
		switch draw() {
		case conflict:
			return answer(r, apierrors.NewConflict(schema.GroupResource{}, r.URL.Path, errCut))
		case tooMany:
			return answer(r, apierrors.NewTooManyRequests("too many", 1))
		case failure:
			return answer(r, apierrors.NewInternalError(errCut))
		case answerLost:
			late.Store(time.Now().Add(300 * time.Millisecond).UnixNano())
			response, err := next.RoundTrip(r)
			if err == nil {
				_ = response.Body.Close()
			}
			return nil, errCut
		default:
			return next.RoundTrip(r)
		}
	})
	return func() map[fault]int {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(count)
	}
}

// lateBody delivers nothing before a moment, in nanoseconds.
type lateBody struct {
	io.ReadCloser
	until *atomic.Int64
}

func (b lateBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	<-time.After(time.Until(time.Unix(0, b.until.Load())))
	return n, err
}

// answer is the error as the server would send it.
func answer(r *http.Request, err *apierrors.StatusError) (*http.Response, error) {
	status := err.Status()
	status.APIVersion, status.Kind = "v1", "Status"
	body, encodingErr := json.Marshal(status)
	header := http.Header{"Content-Type": {"application/json"}}
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		header.Set("Retry-After", fmt.Sprint(seconds))
	}
	return &http.Response{
		StatusCode: int(status.Code), Status: http.StatusText(int(status.Code)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}, encodingErr
}

// Watches that break in the middle of an event, and whose place in history the server has forgotten,
// lose nothing.
func TestBrokenWatchesLoseNothing(t *testing.T) {
	const replicas, maxUnavailable = 4, 1
	givenNodes(t, simnodes.Options{Bind: true})
	c := env.Client(t)
	set := newSet(env.Namespace(t), replicas, v1beta1.InPlaceIfPossible, maxUnavailable)
	require.NoError(t, c.Create(t.Context(), set))
	var watches, expired atomic.Int64
	startControllerOver(t, set.Namespace, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if !isPodWatch(r) {
			return next.RoundTrip(r)
		}
		switch watches.Add(1) {
		case 1:
			response, err := next.RoundTrip(r)
			if err == nil {
				response.Body = &cutBody{ReadCloser: response.Body, left: 20_000}
			}
			return response, err
		case 2:
			expired.Add(1)
			return answer(r, apierrors.NewResourceExpired("the server has forgotten"))
		}
		return next.RoundTrip(r)
	})
	settles(t, c, set)
	before := identities(podsOf(t, c, set))
	history := recordPods(t, set.Namespace)
	edit(t, c, set, image("app:2"))
	settles(t, c, set)
	history.replay(t, func(pods []*corev1.Pod) {
		_, available := countPods(pods)
		assert.GreaterOrEqual(t, available, replicas-maxUnavailable)
	})
	assert.Positive(t, expired.Load(), "no watch was broken and refused")
	assert.Equal(t, before, identities(podsOf(t, c, set)))
	assertWanted(t, c, set)
}

// cutBody ends with an error when this many bytes have been read.
type cutBody struct {
	io.ReadCloser
	left int
}

func (b *cutBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, errCut
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// Others delete, orphan, relabel and hold pods during a rollout. What they do is repaired or
// respected, and the set gets what it wants all the same.
func TestForeignWritersAreRepairedOrRespected(t *testing.T) {
	const finalizer = "example.com/hold"
	givenNodes(t, simnodes.Options{Bind: true, ReadyDelay: 100 * time.Millisecond})
	c := env.Client(t)
	set := newSet(env.Namespace(t), 6, v1beta1.InPlaceIfPossible, 1)
	startController(t, set.Namespace)
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	edit(t, c, set, image("app:2"))
	eventually(t, func(collect *assert.CollectT) {
		assert.Positive(collect, countImages(podsOf(t, c, set))["app:2"])
	})

	pods := podsOf(t, c, set)
	deleted, orphaned, relabelled, held := &pods[0], &pods[1], &pods[2], &pods[3]
	require.NoError(t, c.Delete(t.Context(), deleted))
	change(t, c, orphaned, func(o *corev1.Pod) { o.OwnerReferences = nil })
	change(t, c, relabelled, func(o *corev1.Pod) { o.Labels["app"] = "other" })
	change(t, c, held, func(o *corev1.Pod) { o.Finalizers = append(o.Finalizers, finalizer) })
	require.NoError(t, c.Delete(t.Context(), held))
	assert.Positive(t, countImages(podsOf(t, c, set))["app:1"], "the rollout was over")

	settles(t, c, set)
	assertWanted(t, c, set)
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(held), held), "nobody else may take the finalizer off")
	assert.NotNil(t, held.DeletionTimestamp)
	change(t, c, held, func(o *corev1.Pod) { o.Finalizers = nil })
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(relabelled), relabelled))
	assert.Nil(t, metav1.GetControllerOf(relabelled), "what the selector does not match is released")
	assert.Nil(t, relabelled.DeletionTimestamp)
	eventually(t, func(collect *assert.CollectT) {
		for _, o := range []*corev1.Pod{deleted, held} {
			assert.True(collect, apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(o), &corev1.Pod{})), o.Name)
		}
	})
	settles(t, c, set)
	assertWanted(t, c, set)
	assertCalm(t, c, set)
}

// change writes the pod whatever version others have made of it.
func change(t *testing.T, c client.Client, o *corev1.Pod, edit func(*corev1.Pod)) {
	t.Helper()
	before := o.DeepCopy()
	edit(o)
	require.NoError(t, c.Patch(t.Context(), o, client.MergeFrom(before)))
}

// startControllerOver starts the controller with all its requests made by send.
func startControllerOver(t *testing.T, namespace string, send func(*http.Request, http.RoundTripper) (*http.Response, error)) {
	t.Helper()
	over := env
	over.Config = rest.CopyConfig(env.Config)
	over.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) { return send(r, next) })
	})
	startControllerIn(t, over, namespace)
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// isWrite says whether the request is one of those that a plan or a status makes.
func isWrite(r *http.Request) bool {
	return r.Method != http.MethodGet && !r.URL.Query().Has("dryRun") && !strings.Contains(r.URL.Path, "/events")
}

func isPodWatch(r *http.Request) bool {
	return r.URL.Query().Has("watch") && strings.HasSuffix(r.URL.Path, "/pods")
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// argument changes what only a new pod can have.
func argument(text string) func(*v1beta1.CloneSet) {
	return func(set *v1beta1.CloneSet) { set.Spec.Template.Spec.Containers[0].Args = []string{text} }
}

// podHistory is where the pods of a namespace stood at a moment.
type podHistory struct {
	namespace, version string
	pods               map[string]*corev1.Pod
}

func recordPods(t *testing.T, namespace string) podHistory {
	t.Helper()
	list := &corev1.PodList{}
	require.NoError(t, env.Client(t).List(t.Context(), list, client.InNamespace(namespace)))
	h := podHistory{namespace: namespace, version: list.ResourceVersion, pods: map[string]*corev1.Pod{}}
	for i := range list.Items {
		h.pods[list.Items[i].Name] = &list.Items[i]
	}
	return h
}

// replay shows the pods after every event that there was from the moment until now.
func (h podHistory) replay(t *testing.T, show func([]*corev1.Pod)) {
	t.Helper()
	c, err := client.NewWithWatch(env.ConfigAs(t, "test"), client.Options{Scheme: env.Scheme})
	require.NoError(t, err)
	last := gen.Pod("", gen.Namespaced(h.namespace))
	last.ObjectMeta = metav1.ObjectMeta{Namespace: h.namespace, GenerateName: "the-last-"}
	require.NoError(t, c.Create(t.Context(), last))
	events, err := c.Watch(t.Context(), &corev1.PodList{}, client.InNamespace(h.namespace),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: h.version}})
	require.NoError(t, err)
	defer events.Stop()
	shown := 0
	for e := range events.ResultChan() {
		o, ok := e.Object.(*corev1.Pod)
		require.True(t, ok, "%+v", e.Object)
		if o.Name == last.Name {
			require.Positive(t, shown)
			require.NoError(t, c.Delete(t.Context(), last, client.GracePeriodSeconds(0)))
			return
		}
		h.pods[o.Name] = o
		if e.Type == watch.Deleted {
			delete(h.pods, o.Name)
		}
		show(slices.Collect(maps.Values(h.pods)))
		shown++
	}
	t.Fatal("the watch ended early")
}

// countPods counts the pods that CloneSet web controls.
func countPods(pods []*corev1.Pod) (active, available int) {
	for _, o := range pods {
		if metav1.GetControllerOf(o) == nil {
			continue
		}
		state := podstate.Of(o, time.Now(), 0)
		if state.Active {
			active++
		}
		if state.Available {
			available++
		}
	}
	return active, available
}

func countImages(pods []corev1.Pod) map[string]int {
	count := map[string]int{}
	for i := range pods {
		count[pods[i].Spec.Containers[0].Image]++
	}
	return count
}

// end is what a set ends with, without what differs from run to run.
func end(t *testing.T, c client.Client, set *v1beta1.CloneSet) string {
	t.Helper()
	status := set.Status.DeepCopy()
	status.Conditions = nil
	text, err := json.Marshal(status)
	require.NoError(t, err)
	lines := []string{string(text)}
	for _, o := range podsOf(t, c, set) {
		lines = append(lines, fmt.Sprintf("%s %s %s restarts %d", o.Labels[contract.RevisionLabel], o.Spec.Containers[0].Image,
			o.Labels[contract.LifecycleStateLabel], o.Status.ContainerStatuses[0].RestartCount))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// assertWanted demands that the pods of the set, and no others, are as its template says.
func assertWanted(t *testing.T, c client.Client, set *v1beta1.CloneSet) {
	t.Helper()
	mine := slices.DeleteFunc(podsOf(t, c, set), func(o corev1.Pod) bool { return !metav1.IsControlledBy(&o, set) })
	want := set.Spec.Template.Spec.Containers[0]
	assert.Len(t, mine, int(*set.Spec.Replicas))
	for i := range mine {
		assert.Equal(t, want.Image, mine[i].Spec.Containers[0].Image)
		assert.Equal(t, want.Args, mine[i].Spec.Containers[0].Args)
		assert.Equal(t, set.Status.UpdateRevision, mine[i].Labels[contract.RevisionLabel])
	}
}

// assertCalm demands that another pass, forced by an edit that concerns no pod, writes the status only.
func assertCalm(t *testing.T, c client.Client, set *v1beta1.CloneSet) {
	t.Helper()
	for limit := range int32(2) { // what the first pass still finds to do belongs to the rollout
		audit := env.Audit(t)
		edit(t, c, set, func(s *v1beta1.CloneSet) { s.Spec.RevisionHistoryLimit = new(20 + limit) })
		settles(t, c, set)
		if limit > 0 {
			assert.Equal(t, []string{"patch clonesets/status"}, kindsOfWrites(t, audit, set.Namespace))
		}
	}
}
