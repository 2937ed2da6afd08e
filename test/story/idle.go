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
	// stillness is the time without a new pass after which the manager counts as idle.
	stillness = 3 * time.Second
	// idleTime is how long an idle manager is observed.
	idleTime = 20 * time.Second
	// idleCPU is the CPU that it may use then, in cores. It is ten times the budget, because other load on the machine
	// makes the value inexact; a manager that loops uses far more.
	idleCPU = 0.05
	// passesAtStart is how many passes a new manager may make over an object that needs no change.
	passesAtStart = 2
)

// StartsAndIdles checks that the feature's manager changes nothing when it starts in a cluster with this many settled
// objects of its kinds, and that from then on it only renews its Lease, also while others write. The story must not run
// in parallel with others.
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
	select { // the absence of requests can only be seen by waiting
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

// atStart reports whether the request must not be made at a start with settled objects: a write, or a list of pods in
// their namespace that they could adopt.
func atStart(r audit.Request) bool {
	return r.IsWrite() && r.Object.Group == "apps.kruise.io" || r.Kind() == "list pods" && r.Object.Namespace != ""
}

const (
	passes = "controller_runtime_reconcile_total"
	cpu    = "process_cpu_seconds_total"
)

// restartOperator deletes the pod of the feature's manager and waits for the next one.
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

// chatter returns the selected requests of the feature's manager since the log was last read. It leaves out renewals of
// its Lease, watches that the server has ended after some minutes, and reviews of the story's token for metrics.
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
