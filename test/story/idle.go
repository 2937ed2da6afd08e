package story

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/test/audit"
	"github.com/flotilla-project/flotilla/test/install"
)

const (
	// stillness is how long no pass begins until all that there was to do is taken to be done.
	stillness = 3 * time.Second
	// idleTime is how long an idle manager is looked at.
	idleTime = 20 * time.Second
	// idleCPU is what it may take then, in cores: ten times the budget, because the machine is a busy
	// one and the figure is no measurement. Whoever loops takes far more.
	idleCPU = 0.05
	// passesAtStart is how often a new manager may look at an object that is as it should be.
	passesAtStart = 2
)

// StartsAndIdles checks what the feature's manager does when it starts over a world with this many objects of its own,
// all of them settled, and when there is nothing to do from then on: nothing but to renew its Lease, also while others
// are busy. The story must not run beside others.
func (w World) StartsAndIdles(t *testing.T, feature string, objects int) {
	t.Helper()
	w.awaitTheEndOfOthers(t)
	log := &audit.Log{Path: w.Cluster.AuditLog()}
	require.NoError(t, log.Skip())
	w.restartOperator(t, feature)
	start := w.awaitStillness(t, feature)
	looks := start.Sum(passes)
	t.Logf("%.0f passes over %d objects at the start", looks, objects)
	assert.LessOrEqual(t, looks, float64(passesAtStart*objects))
	assert.GreaterOrEqual(t, looks, float64(objects), "not all objects were looked at")
	assert.Empty(t, w.chatter(t, log, feature, atStart),
		"requests about objects that are as they should be")

	before := parseSamples(w.MetricsPage(t, feature))
	require.NoError(t, log.Skip())
	select { // what does not happen can only be seen by waiting
	case <-time.After(idleTime):
	case <-t.Context().Done():
	}
	after := parseSamples(w.MetricsPage(t, feature))
	cores := (after.Sum(cpu) - before.Sum(cpu)) / idleTime.Seconds()
	t.Logf("%.1f millicores while idle", 1000*cores)
	assert.Less(t, cores, idleCPU, "cores while idle")
	require.NotZero(t, after.Sum(cpu))

	w.crowd(t, "busy")
	assert.Equal(t, before.Of(passes), parseSamples(w.MetricsPage(t, feature)).Of(passes), "passes for no reason")
	assert.Empty(t, w.chatter(t, log, feature, func(audit.Request) bool { return true }))
}

// atStart returns what a start may not ask about objects that are as they should be: to change them, or which pods of
// their namespace they could own besides.
func atStart(r audit.Request) bool {
	return r.IsWrite() && r.Object.Group == "apps.kruise.io" || r.Kind() == "list pods" && r.Object.Namespace != ""
}

const (
	passes = "controller_runtime_reconcile_total"
	cpu    = "process_cpu_seconds_total"
)

// restartOperator ends the feature's manager and waits for the next one.
func (w World) restartOperator(t *testing.T, feature string) {
	t.Helper()
	w.ScaleOperator(t, feature, 0)
	t.Cleanup(func() { w.ScaleOperator(t, feature, 1) })
	w.ScaleOperator(t, feature, 1)
	Eventually(t, "a leader of "+feature, func(ctx context.Context) error {
		served, err := w.operatorMetrics(ctx, feature)
		return Want(err == nil && served.Sum("kruise_manager_is_leader") == 1, "nobody leads (%v)", err)
	})
}

// awaitStillness waits until the manager has begun and has made no pass for a while.
func (w World) awaitStillness(t *testing.T, feature string) Samples {
	t.Helper()
	var last Samples
	since := time.Now()
	Eventually(t, "the end of all passes of "+feature, func(ctx context.Context) error {
		now, err := w.operatorMetrics(ctx, feature)
		if err != nil {
			return err
		}
		if last == nil || now.Sum(passes) != last.Sum(passes) || now.Sum(passes) == 0 {
			last, since = now, time.Now()
		}
		return Want(time.Since(since) > stillness, "passes are %v", now.Of(passes))
	})
	return last
}

// chatter returns the requests of the feature's manager since the log was read last that are asked for. Its Lease must
// be renewed, a watch that the server ends after some minutes begins again, and the story's own token for the metrics
// is reviewed.
func (w World) chatter(t *testing.T, log *audit.Log, feature string, asked func(audit.Request) bool) []string {
	t.Helper()
	requests, err := log.Read(func(r audit.Request) bool { return account(r) == feature+"-manager" })
	require.NoError(t, err)
	require.NotEmpty(t, requests, "not even the Lease was renewed")
	var all []string
	for _, r := range requests {
		lease := r.Object.Resource == "leases" && r.Object.Namespace == install.Namespace
		review := r.Object.Resource == "tokenreviews" || r.Object.Resource == "subjectaccessreviews"
		if !lease && !review && r.Verb != "watch" && r.Object.Resource != "" && asked(r) {
			all = append(all, fmt.Sprintf("%s of %s/%s", r.Kind(), r.Object.Namespace, r.Object.Name))
		}
	}
	return all
}
