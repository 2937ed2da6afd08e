package freshness_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/flotilla-project/flotilla/core/internal/controllers/freshness"
	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
)

var env testenv.Environment

func TestMain(m *testing.M) { env.Run(m, testenv.Options{}) }

// startTracker starts a manager with a cache of the labelled pods and a tracker of it.
func startTracker(t *testing.T, leader func(context.Context) (string, error)) *freshness.Tracker {
	t.Helper()
	gates, _ := gates(t, 1, leader)
	return gates[0]
}

// lister counts the lists that the server is asked for.
type lister struct {
	client.Reader
	lists atomic.Int64
}

func (l *lister) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	l.lists.Add(1)
	return l.Reader.List(ctx, list, options...)
}

// gates starts a manager with a cache of the labelled pods and gates over it, which share a fence if there is a leader.
func gates(t *testing.T, n int, leader func(context.Context) (string, error)) ([]*freshness.Tracker, *lister) {
	t.Helper()
	selector, err := labels.Parse("cached")
	require.NoError(t, err)
	kinds := map[client.Object]cache.ByObject{&corev1.Pod{}: {Label: selector}}
	mgr := env.Manager(t, func(o *manager.Options) { o.Cache.ByObject = kinds })
	live := &lister{Reader: mgr.GetAPIReader()}
	o := freshness.Options{Cache: mgr.GetCache(), Scheme: mgr.GetScheme(), Kinds: kinds, Live: live, Clock: clock.RealClock{}}
	if leader != nil {
		o.Fence = freshness.NewFence(leader)
	}
	all := make([]*freshness.Tracker, n)
	for i := range all {
		all[i], err = freshness.New(t.Context(), o)
		require.NoError(t, err)
		require.NoError(t, mgr.Add(all[i]))
	}
	env.Start(t, mgr)
	return all, live
}

func pod(ns, name string, cached bool) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "image"}}},
	}
	if cached {
		p.Labels = map[string]string{"cached": ""}
	}
	return p
}

func eventuallyFresh(t *testing.T, g *freshness.Tracker, key types.NamespacedName) {
	t.Helper()
	await.Until(t, func(check *assert.CollectT) {
		assert.Zero(check, g.Wait(t.Context(), key), "pending: %v", g.Pending(key))
	})
}

func TestTrackerFollowsTheServer(t *testing.T) {
	ns, c, g := env.Namespace(t), env.Client(t), startTracker(t, nil)
	key := types.NamespacedName{Namespace: ns, Name: "workload"}
	eventuallyFresh(t, g, key)

	one := pod(ns, "one", true)
	require.NoError(t, c.Create(t.Context(), one))
	g.Created(key, one)
	eventuallyFresh(t, g, key)
	require.NoError(t, c.Patch(t.Context(), one, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))))
	g.Written(key, one)
	eventuallyFresh(t, g, key)
	require.NoError(t, c.Delete(t.Context(), one))
	g.Deleted(key, one)
	eventuallyFresh(t, g, key)
}

func TestObjectThatIsNeverCachedIsPassedByOthers(t *testing.T) {
	ns, c, g := env.Namespace(t), env.Client(t), startTracker(t, nil)
	key := types.NamespacedName{Namespace: ns, Name: "workload"}
	eventuallyFresh(t, g, key)

	hidden := pod(ns, "hidden", false)
	require.NoError(t, c.Create(t.Context(), hidden))
	g.Created(key, hidden)
	require.NotZero(t, g.Wait(t.Context(), key))
	require.NoError(t, c.Create(t.Context(), pod(ns, "other", true)))
	eventuallyFresh(t, g, key)
}

func TestDoubtsAreSettledByTheServer(t *testing.T) {
	ns, c, g := env.Namespace(t), env.Client(t), startTracker(t, nil)
	key := types.NamespacedName{Namespace: ns, Name: "workload"}
	eventuallyFresh(t, g, key)

	g.MaybeCreated(key, pod(ns, "never-made", true))
	made := pod(ns, "made", true)
	g.MaybeCreated(key, made)
	require.NotZero(t, g.Wait(t.Context(), key))
	require.NoError(t, c.Create(t.Context(), made))
	eventuallyFresh(t, g, key)

	g.MaybeWritten(key, made)
	require.NotZero(t, g.Wait(t.Context(), key), "the write may still arrive")
	eventuallyFresh(t, g, key)
	g.MaybeWritten(key, made)
	require.NoError(t, c.Delete(t.Context(), made))
	eventuallyFresh(t, g, key)
}

func TestNewLeaderWaitsUntilItsQuietStoresAreComplete(t *testing.T) {
	ns, c := env.Namespace(t), env.Client(t)
	require.NoError(t, c.Create(t.Context(), pod(ns, "one", true)))
	won := make(chan string, 1)
	g := startTracker(t, func(ctx context.Context) (string, error) {
		select {
		case version := <-won:
			return version, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	key := types.NamespacedName{Namespace: ns, Name: "workload"}
	impatient, leave := context.WithCancel(t.Context())
	leave()
	assert.NotZero(t, g.Wait(impatient, key), "passes run though the version of the leader is unknown")

	lease := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "lease"}}
	require.NoError(t, c.Create(t.Context(), lease))
	won <- lease.ResourceVersion
	eventuallyFresh(t, g, key)
}

// A store that stays quiet is compared with the server once, however many controllers read it.
func TestQuietStoresAreListedOnceForAllTrackers(t *testing.T) {
	ns, c := env.Namespace(t), env.Client(t)
	require.NoError(t, c.Create(t.Context(), pod(ns, "one", true)))
	all, live := gates(t, 3, func(ctx context.Context) (string, error) {
		lease := &corev1.ConfigMap{}
		err := c.Get(ctx, types.NamespacedName{Namespace: ns, Name: "lease"}, lease)
		return lease.ResourceVersion, err
	})
	require.NoError(t, c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "lease"}}))
	key := types.NamespacedName{Namespace: ns, Name: "workload"}
	for _, g := range all {
		eventuallyFresh(t, g, key)
	}
	assert.EqualValues(t, 1, live.lists.Load())
}
