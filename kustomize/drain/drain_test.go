package drain

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/flotilla-project/flotilla/kustomize/workload"
)

// world is a node with pods, and a server that evicts them unless it answers something else first.
type world struct {
	drain
	out     bytes.Buffer
	mutex   sync.Mutex
	answers map[string][]error // by pod, one for each try
	evicted []string
	periods []*int64 // of the evictions
}

func newWorld(pods ...string) *world {
	w := &world{answers: map[string][]error{}}
	objects := []runtime.Object{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}}
	for _, name := range pods {
		namespace := "shop"
		if name == "budget-manager" {
			namespace = "flotilla-system"
		}
		objects = append(objects, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Controller: new(true)}}},
			Spec:       corev1.PodSpec{NodeName: "node-1"},
		})
	}
	client := fake.NewClientset(objects...)
	client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		eviction, ok := action.(clienttesting.CreateAction).GetObject().(*policyv1.Eviction)
		if !ok {
			return false, nil, nil
		}
		w.mutex.Lock()
		defer w.mutex.Unlock()
		if left := w.answers[eviction.Name]; len(left) > 0 {
			w.answers[eviction.Name] = left[1:]
			return true, nil, left[0]
		}
		w.evicted = append(w.evicted, eviction.Name)
		w.periods = append(w.periods, eviction.DeleteOptions.GracePeriodSeconds)
		return true, nil, client.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), eviction.Namespace, eviction.Name)
	})
	w.drain = drain{
		streams: genericiooptions.IOStreams{Out: &w.out}, clock: clock.RealClock{}, client: &workload.Client{Core: client}, node: "node-1",
		again: time.Millisecond, look: time.Millisecond, grace: ownPeriod,
	}
	return w
}

// A webhook of an operator that moves does not answer for a while; the server is busy; etcd changes its leader.
func TestAnEvictionIsTriedAgain(t *testing.T) {
	w := newWorld("a", "b")
	w.answers["a"] = []error{
		apierrors.NewTooManyRequests("budget", 1),
		apierrors.NewInternalError(errors.New("failed calling webhook vpodeviction.kb.io: connection refused")),
		apierrors.NewServiceUnavailable("starting"), apierrors.NewTimeoutError("slow", 1),
	}

	require.NoError(t, w.run(t.Context(), false), w.out.String())

	assert.ElementsMatch(t, []string{"a", "b"}, w.evicted)
	assert.Contains(t, w.out.String(), "pod shop/a waits: ")
	assert.Contains(t, w.out.String(), "node/node-1 drained\n")
}

// A grace period is that of the pods, unless the user names one.
func TestTheGracePeriodOfEvictions(t *testing.T) {
	w := newWorld("a")
	require.NoError(t, w.run(t.Context(), false), w.out.String())
	assert.Equal(t, []*int64{nil}, w.periods)

	for _, grace := range []int64{0, 20} {
		w := newWorld("a")
		w.grace = grace
		require.NoError(t, w.run(t.Context(), false), w.out.String())
		assert.Equal(t, []*int64{&grace}, w.periods)
	}
}

// What a user must mend ends the drain.
func TestAnEvictionThatIsForbiddenIsAnError(t *testing.T) {
	w := newWorld("a")
	w.answers["a"] = []error{apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("no"))}

	require.ErrorContains(t, w.run(t.Context(), false), "evict pod shop/a: ")
	assert.Equal(t, []string{"shop/a"}, w.left(t.Context()))
}

// While other pods are evicted, the operators answer the webhooks that judge evictions.
func TestOperatorsLeaveLast(t *testing.T) {
	w := newWorld("budget-manager", "a", "b")
	w.answers["a"] = slices.Repeat([]error{apierrors.NewTooManyRequests("budget", 1)}, 20)

	require.NoError(t, w.run(t.Context(), false))

	require.Len(t, w.evicted, 3)
	assert.Equal(t, "budget-manager", w.evicted[2])
}

// The answer at the timeout names the pods that are left.
func TestPodsThatAreLeftAreNamed(t *testing.T) {
	w := newWorld("a", "b")
	w.answers["b"] = slices.Repeat([]error{apierrors.NewTooManyRequests("budget", 1)}, 1<<20)
	ctx, stop := context.WithCancel(t.Context())
	w.clock = stopper{Clock: w.clock, stop: stop, after: func() bool { return len(w.left(t.Context())) == 1 }}

	require.ErrorIs(t, w.run(ctx, false), context.Canceled)

	assert.Equal(t, []string{"shop/b"}, w.left(t.Context()))
}

// stopper ends a drain when something is so.
type stopper struct {
	clock.Clock
	stop  func()
	after func() bool
}

func (s stopper) After(d time.Duration) <-chan time.Time {
	if s.after() {
		s.stop()
	}
	return s.Clock.After(d)
}
