package scale

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/test/audit"
)

const log = `{"verb":"create","userAgent":"other","requestReceivedTimestamp":"2026-01-01T00:00:01Z","stageTimestamp":"2026-01-01T00:00:02Z","requestURI":"/api/v1/namespaces/a/pods","objectRef":{"resource":"pods"},"responseStatus":{"code":201}}
{"verb":"create","userAgent":"mine/1","requestReceivedTimestamp":"2026-01-01T00:00:01.5Z","stageTimestamp":"2026-01-01T00:00:02Z","requestURI":"/api/v1/namespaces/a/pods","objectRef":{"resource":"pods"},"responseStatus":{"code":201}}
{"verb":"create","userAgent":"mine/1","requestReceivedTimestamp":"2026-01-01T00:00:01Z","stageTimestamp":"2026-01-01T00:00:04Z","requestURI":"/api/v1/namespaces/a/pods","objectRef":{"resource":"pods"},"responseStatus":{"code":201}}
{"verb":"patch","userAgent":"mine/1","requestReceivedTimestamp":"2026-01-01T00:00:03Z","stageTimestamp":"2026-01-01T00:00:05Z","requestURI":"/api/v1/namespaces/a/pods/x/status","objectRef":{"resource":"pods","subresource":"status"},"responseStatus":{"code":409}}
{"verb":"create","userAgent":"mine/1","requestReceivedTimestamp":"2026-01-01T00:00:09Z","stageTimestamp":"2026-01-01T00:00:09Z","requestURI":"/apis/events","objectRef":{"resource":"events"},"responseStatus":{"code":201}}
{"verb":"update","userAgent":"mine/1","requestReceivedTimestamp":"2026-01-01T00:00:09Z","stageTimestamp":"2026-01-01T00:00:09Z","requestURI":"/apis/leases","objectRef":{"resource":"leases"},"responseStatus":{"code":200}}
{"verb":"create","userAgent":"mine/1","requestReceivedTimestamp":"2026-01-01T00:00:09Z","stageTimestamp":"2026-01-01T00:00:09Z","requestURI":"/api/v1/podtemplates?dryRun=All","objectRef":{"resource":"podtemplates"},"responseStatus":{"code":201}}
{"verb":"get","userAgent":"mine/1","requestURI":"/api/v1/pods","objectRef":{"resource":"pods"},"responseStatus":{"code":200}}
`

func givenLog(t *testing.T, text string) *audit.Log {
	t.Helper()
	file := filepath.Join(t.TempDir(), "audit.log")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return &audit.Log{Path: file}
}

func TestWritesOfOneControllerAreCounted(t *testing.T) {
	writes, err := givenLog(t, log).Read(audit.Request.IsWrite)
	require.NoError(t, err)
	row := Row{Pods: 2}
	row.account(writes, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), "mine/")
	assert.Equal(t, Row{
		Pods: 2, FirstWrite: 1, LastCreate: 4, LastWrite: 5, Events: 1, Conflicts: 1,
		Writes: map[string]int{"create pods": 2, "patch pods/status": 1},
		Others: map[string]int{"other: create pods": 1},
	}, row)
	assert.Equal(t, "create pods 1.00 a pod, patch pods/status 0.50 a pod", row.kinds(row.Writes))
	assert.InDelta(t, 1.5, row.perPod(), 0)
}

func TestTheOwnProcessIsMeasured(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("processes are measured on Linux only")
	}
	own, err := find(filepath.Base(os.Args[0]), "-test.")
	require.NoError(t, err)
	m, err := startMeter(t.Context(), []process{own})
	require.NoError(t, err)
	var costs map[string]Cost
	await.Until(t, func(check *assert.CollectT) { // the system counts in hundredths of a second
		for began := time.Now(); time.Since(began) < 50*time.Millisecond; { // burns CPU
		}
		costs, err = m.cost()
		require.NoError(check, err)
		assert.Positive(check, costs[own.name].CPU)
	})
	assert.Positive(t, costs[own.name].MemoryMiB)
	_, err = find("no-such-command", "")
	assert.ErrorContains(t, err, "no process")
}

func TestClientsHaveShortNames(t *testing.T) {
	for given, want := range map[string]string{
		"cloneset-manager/cloneset":                  "cloneset-manager/cloneset",
		"kube-scheduler/v1.37.2 (linux/amd64) k/sch": "kube-scheduler/v1.37.2",
		"kube-controller-manager/v1.37.2 (linux/amd64) k/1/system:serviceaccount:kube-system:replicaset-controller": "replicaset-controller",
	} {
		assert.Equal(t, want, agent(given))
	}
}

func TestTheTableTellsWhatControllersTook(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, Print(&out, []Row{
		{Load: "floor", Pods: 10, Done: 2, Median: 1.5, P99: 9},
		{Load: "idle", Done: 20, Controller: "op", Writes: map[string]int{"patch pods": 3}, Costs: map[string]Cost{"op": {0.5, 20}}},
		{Load: "up", Pods: 10, Done: 5, Controller: "op", Writes: map[string]int{"create pods": 10}, Costs: map[string]Cost{"op": {1.5, 30}}},
	}))
	assert.Regexp(t, `(?m)^ *floor +10 .* 2\.00 +5 +0\.00 `, out.String())
	assert.Regexp(t, `(?m)^ *up +10 .* 5\.00 +2 +1\.00 +0\.00 +0 +1\.50 +30$`, out.String())
	assert.Regexp(t, `(?m)^ *idle +0 .* 20\.00 +0 +3\.00 +0\.00 +0 +0\.50 +20$`, out.String())
	assert.Contains(t, out.String(), "\nidle\n  writes: patch pods 3\n  of others: \n  millicores: 25.0\n")
	assert.Contains(t, out.String(), "\nup\n  writes: create pods 1.00 a pod\n  of others: \n  CPU s: op 1.50\n")
	assert.Contains(t, out.String(), "\nfloor\n  ms a request: median 1.5, 99th percentile 9.0\n  CPU s:\n")
}

func TestSeriesOfTheControllerAreAddedUp(t *testing.T) {
	const text = `# TYPE workqueue_depth gauge
workqueue_depth{controller="cloneset",name="cloneset",priority="-100"} 2
workqueue_depth{controller="cloneset",name="cloneset",priority="0"} 3
workqueue_depth{controller="other",name="other",priority="0"} 5
workqueue_depth_more{controller="cloneset"} 7
`
	assert.InDelta(t, 5, total(text, "workqueue_depth"), 0)
	assert.InDelta(t, 3, total(text, "workqueue_depth", `priority="0"`), 0)
	assert.Zero(t, total(text, "no_such_metric"))
}

func TestReadsAndWritesAreToldApart(t *testing.T) {
	requests, err := givenLog(t, log).Read(isAboutObjects)
	require.NoError(t, err)
	assert.Equal(t, map[string]int{"get pods": 1}, reads(requests, "mine/"))
	assert.Len(t, onlyWrites(requests), 6)
	assert.Len(t, requests, 8, "nothing is lost")
}

func TestCopiesOfTheSeedHaveTheirOwnName(t *testing.T) {
	pod := &corev1.Pod{}
	require.NoError(t, renamed([]byte(`{"metadata":{"name":"seedling-x","namespace":"a","uid":"1","resourceVersion":"2","labels":{"app":"seedling"}}}`), "b", "web-1", pod))
	assert.Equal(t, metav1.ObjectMeta{Name: "web-1-x", Namespace: "b", Labels: map[string]string{"app": "web-1"}}, pod.ObjectMeta)
}
