package freshness_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/flotilla-project/flotilla/core/controllers/execute"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/internal/controllers/freshness"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/testing/await"
)

// TestPassesNeverCreateTwice runs passes as fast as it can, each of which fills up to the wanted
// number of pods under fresh names: a pass that did not see what the last one wrote would make too many.
//
// It does so with and without what the server has answered before the cache shows it.
func TestPassesNeverCreateTwice(t *testing.T) {
	t.Run("waiting for the cache", func(t *testing.T) { passesNeverCreateTwice(t, false) })
	t.Run("over the cache", func(t *testing.T) { passesNeverCreateTwice(t, true) })
}

func passesNeverCreateTwice(t *testing.T, over bool) {
	t.Helper()
	const wanted, perPass = 60, 7
	ns, c := env.Namespace(t), env.Client(t)
	slow := func(o any) (any, error) { // a cache that is always a little behind
		<-time.After(3 * time.Millisecond)
		return o, nil
	}
	kinds := map[client.Object]cache.ByObject{&corev1.Pod{}: {Transform: slow}}
	mgr := env.Manager(t, func(o *manager.Options) { o.Cache.ByObject = kinds })
	require.NoError(t, fastclient.IndexOwners(t.Context(), mgr.GetFieldIndexer(), &corev1.Pod{}))
	tracker, err := freshness.New(t.Context(), freshness.Options{
		Cache: mgr.GetCache(), Scheme: mgr.GetScheme(), Kinds: kinds, Live: mgr.GetAPIReader(), Clock: clock.RealClock{},
	})
	require.NoError(t, err)
	require.NoError(t, mgr.Add(tracker))
	writer, err := fastclient.NewClient(mgr, "passes")
	require.NoError(t, err)
	executor, err := execute.New(execute.Options{
		Client: writer, Live: mgr.GetAPIReader(), Recorder: tracker, Metrics: prometheus.NewRegistry(),
	})
	require.NoError(t, err)
	var detector fastclient.Detector
	reading := fastclient.Options{Detector: &detector}
	if over {
		reading.Over = tracker.Over
	}
	reader := fastclient.NewReader(mgr.GetCache(), mgr.GetScheme(), reading)
	env.Start(t, mgr)

	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "owner"}}
	require.NoError(t, c.Create(t.Context(), owner))
	key := client.ObjectKeyFromObject(owner)
	audit := env.Audit(t)
	names, waits := 0, 0
	pass := func() bool {
		if tracker.Wait(t.Context(), key) > 0 {
			waits++
			return false
		}
		owned, err := fastclient.Owned[corev1.Pod](t.Context(), reader, ns, owner.UID)
		require.NoError(t, err)
		missing := wanted - len(owned)
		fill := action.Step{Name: "fill", SlowStart: true}
		for range min(missing, perPass) {
			names++
			made := pod(ns, fmt.Sprintf("pod-%d", names), false)
			made.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}}
			fill.Actions = append(fill.Actions, action.Action{Verb: action.Create, Object: made})
		}
		if missing > 0 {
			out := executor.Run(t.Context(), owner, []action.Step{fill})
			require.NoError(t, out.Err)
		}
		return missing <= 0
	}
	for start := time.Now(); !pass(); {
		require.Less(t, time.Since(start), await.Limit, "pending: %v", tracker.Pending(key))
	}

	assert.Equal(t, map[string]int{"create pods": wanted}, audit.Writes(t, "passes"))
	assert.Equal(t, over, waits == 0)
	detector.Check(t)
}
