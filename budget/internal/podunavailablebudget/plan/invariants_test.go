package plan

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/testing/seeds"

	"github.com/flotilla-project/flotilla/budget/internal/disruption"
)

// judge checks at every instant that the pods that serve, less those that were granted a disruption which is yet to come,
// are as many as must stay available, less those that have failed by themselves.
func (w *world) judge(t *testing.T, floor int) {
	t.Helper()
	coming := map[string]bool{}
	for _, r := range w.requests {
		if p := w.pods[r.pod.Name]; r.granted && r.op != resize && p != nil && (r.op == evict || p.ResourceVersion == r.version()) {
			coming[string(r.pod.UID)] = true
		}
	}
	serving, failed := 0, 0
	for _, p := range w.pods {
		leaves := p.DeletionTimestamp == nil && !p.restarts.IsZero() && !p.failed
		require.False(t, leaves && !disruption.HasEntry(&w.budget().Status, p.Pod), "a change counts until the container of before has ended")
	}
	for _, p := range w.pods {
		switch {
		case p.failed:
			failed++
		case p.DeletionTimestamp == nil && p.restarts.IsZero() && !coming[string(p.UID)] && disruption.StatusOf(p.Pod, corev1.PodReady) == corev1.ConditionTrue:
			serving++
		}
	}
	require.GreaterOrEqual(t, serving+failed, floor, "pods serve, or have failed")
	require.False(t, w.wronged, "what does not serve is free, and a refusal leaves no trace")
	s := &w.budget().Status
	require.GreaterOrEqual(t, s.UnavailableAllowed, int32(0))
	require.LessOrEqual(t, s.UnavailableAllowed, max(0, s.TotalReplicas-s.DesiredAvailable))
	for _, g := range disruption.Grants(s) {
		require.NotEmpty(t, g.UID)
	}
	require.LessOrEqual(t, len(s.PodUIDs), len(disruption.Grants(s)))
	require.Len(t, s.Grants, len(s.PodUIDs), "each entry has passed the budget")
}

// Concurrent requests, stale views, wrong clocks, lost answers, restarts and failures: the application never falls below
// its floor, and when they end the budget is free again.
func TestNoDisruptionTakesTheApplicationBelowItsFloor(t *testing.T) {
	const steps = 400
	granted := 0
	seeds.Each(t, 400, func(t *testing.T, seed uint64) {
		t.Helper()
		limits := []change{maxUnavailable("1"), maxUnavailable("2"), maxUnavailable("40%"), minAvailable("3"), minAvailable("80%")}
		protected := []change{operations(), operations(), operations(del, upd), operations(del, evict, upd, resize)}
		replicas := 4 + int(seed%4)
		w := newWorld(seed, budget(limits[seed%5], protected[seed/5%4]), replicas)
		w.nodes()
		w.see(true)
		floor, err := desired(&w.budget().Spec, int32(replicas), false) //nolint:gosec // it is small
		require.NoError(t, err)
		for range steps {
			w.step()
			w.judge(t, int(floor))
		}
		granted += len(w.versions)
		w.calm = true
		for range steps * 3 {
			w.step()
			w.judge(t, int(floor))
		}
		w.see(true)
		w.count()
		s := &w.budget().Status
		require.Empty(t, disruption.Grants(s), "what was granted has come to its end")
		require.EqualValues(t, replicas, s.CurrentAvailable)
		require.Equal(t, s.TotalReplicas-s.DesiredAvailable, s.UnavailableAllowed)
	})
	require.Positive(t, granted)
}
