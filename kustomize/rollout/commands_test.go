package rollout_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/progress"
	"github.com/flotilla-project/flotilla/kustomize/workload"
)

func TestStatusEndsAtThePartition(t *testing.T) {
	for _, kind := range workload.Kinds() {
		t.Run(kind.Name, func(t *testing.T) {
			w := newWorld(t)
			w.create(kind, rolling)
			w.report(kind, 0, "False")

			out, errOut, code := w.call("rollout", "status", kind.Short()+"/web", "--watch=false")
			assert.Equal(t, cli.NotSo, code)
			assert.Empty(t, out)
			assert.Contains(t, errOut, "error: "+kind.Name+"/web is not complete: 0 of 1 "+kind.Pods+" updated, 2 of 2 available: MaxUnavailable: web-x is awaited\n")

			type result struct {
				out  string
				code cli.Code
			}
			ended := make(chan result, 1)
			go func() {
				out, errOut, code := w.call("rollout", "status", kind.Short(), "web", "--timeout=10m", "-o", "json")
				ended <- result{out + errOut, code}
			}()
			w.report(kind, 1, "True")
			got := <-ended
			assert.Equal(t, cli.Done, got.code, got.out)
			var p progress.Report
			require.NoError(t, json.Unmarshal([]byte(got.out), &p), got.out)
			assert.Equal(t, progress.Complete, p.Phase)
			assert.Equal(t, new(1), p.Target)
			assert.Equal(t, "it has reached its partition: 1 of 2 "+kind.Pods+" are updated, 1 stays at an older revision", p.Message)
		})
	}
}

func TestStatusGivesUpInTime(t *testing.T) {
	w := newWorld(t)
	kind := workload.Kinds()[0]
	w.create(kind, rolling)
	out, errOut, code := w.call("rollout", "status", "clone/web", "--timeout=2s")
	assert.Equal(t, cli.NotSo, code, out+errOut)
	assert.Contains(t, errOut, "is not complete after 2s: its operator has not processed the latest change yet")
}

func TestPauseAndResume(t *testing.T) {
	for _, kind := range workload.Kinds() {
		t.Run(kind.Name, func(t *testing.T) {
			w := newWorld(t)
			w.create(kind, rolling)
			for _, c := range []struct {
				args   []string
				says   string
				paused bool
			}{
				{[]string{"resume"}, "is not paused", false},
				{[]string{"pause", "--dry-run"}, "paused (dry run: not applied)", false},
				{[]string{"pause"}, "paused", true},
				{[]string{"pause"}, "is already paused", true},
				{[]string{"resume"}, "resumed", false},
			} {
				out, errOut, code := w.call(append([]string{"rollout", c.args[0], kind.Short() + "/web"}, c.args[1:]...)...)
				assert.Equal(t, cli.Done, code, errOut)
				assert.Equal(t, kind.Name+"/web "+c.says+"\n", out)
				assert.Equal(t, c.paused, w.get(kind).Paused)
			}
		})
	}
}

func TestSetsThatUpdateNothingAreNotPaused(t *testing.T) {
	w := newWorld(t)
	w.create(workload.Kinds()[0], `{"type": "OnDelete"}`)
	_, errOut, code := w.call("rollout", "pause", "clone/web")
	assert.Equal(t, cli.Failed, code)
	assert.Equal(t, "error: cloneset/web has strategy OnDelete: pods are updated only when you delete them\n", errOut)
}

func TestRestart(t *testing.T) {
	for _, kind := range workload.Kinds() {
		t.Run(kind.Name, func(t *testing.T) {
			w := newWorld(t)
			w.create(kind, rolling)
			out, errOut, code := w.call("rollout", "restart", kind.Short()+"/web")
			assert.Equal(t, cli.Done, code, errOut)
			assert.Equal(t, kind.Name+"/web restarted\n", out)
			at, _, err := unstructured.NestedString(w.get(kind).Template(), "metadata", "annotations", "kubectl.kubernetes.io/restartedAt")
			require.NoError(t, err)
			_, err = time.Parse(time.RFC3339, at)
			require.NoError(t, err)
			assert.Contains(t, fmt.Sprint(w.get(kind).Template()), "app:2", "nothing else of the template has changed")
		})
	}
}

// firstRevision is what the history shows of a revision.
const firstRevision = `# revision 1 (web-c)
metadata:
  annotations:
    kubernetes.io/change-cause: to app:0
  labels:
    app: web
spec:
  containers:
  - image: app:0
    name: main
`

func TestHistoryAndUndo(t *testing.T) {
	for _, kind := range workload.Kinds() {
		t.Run(kind.Name, func(t *testing.T) {
			w := newWorld(t)
			owner := w.create(kind, rolling)
			w.remember(owner, "web-c", 1, "app:0")
			w.remember(owner, "web-a", 2, "app:1")
			w.remember(owner, "web-b", 3, "app:2")
			w.run(owner, "web-0", "web-a")
			w.run(owner, "web-1", "b")
			w.report(kind, 1, "True")
			role := "current"
			if kind.Name == "DaemonSet" {
				role = "-"
			}
			name := kind.Short() + "/web"

			out, errOut, code := w.call("rollout", "history", name)
			require.Equal(t, cli.Done, code, errOut)
			assert.Regexp(t, `(?m)^1 +web-c +- +0 +app:0 +to app:0$`, out)
			assert.Regexp(t, `(?m)^2 +web-a +`+role+` +1 +app:1 +to app:1$`, out)
			assert.Regexp(t, `(?m)^3 +web-b +update +1 +app:2 +to app:2$`, out)
			out, errOut, code = w.call("rollout", "history", name, "--revision=1")
			require.Equal(t, cli.Done, code, errOut)
			assert.Equal(t, firstRevision, out)
			_, errOut, code = w.call("rollout", "undo", name, "--to-revision=9")
			assert.Equal(t, cli.Failed, code)
			assert.Contains(t, errOut, "has no revision 9; to list them: flotilla rollout history "+name)

			_, warned, _ := w.call("rollout", "undo", name, "--dry-run")
			assert.Equal(t, kind.Name != "StatefulSet", strings.Contains(warned, "warning: the partition keeps 1 pods"), warned)
			for _, c := range []struct{ arg, says, image string }{
				{"--dry-run", "rolls back to revision 2 (web-a) (dry run: not applied)", "app:2"},
				{"--to-revision=0", "rolls back to revision 2 (web-a)", "app:1"},
				{"--to-revision=2", "already has the template of revision 2", "app:1"},
				{"--to-revision=1", "rolls back to revision 1 (web-c)", "app:0"},
			} {
				out, errOut, code = w.call("rollout", "undo", name, c.arg)
				require.Equal(t, cli.Done, code, errOut)
				assert.Equal(t, kind.Name+"/web "+c.says+"\n", out)
				assert.Contains(t, fmt.Sprint(w.get(kind).Template()), c.image)
			}
			_, errOut, code = w.call("rollout", "undo", name)
			assert.Equal(t, cli.Failed, code, "the operator has not seen the last edit")
			assert.Contains(t, errOut, "the operator has not processed the latest change of "+name+" yet, so its current revision is unknown")
		})
	}
}

func TestDiff(t *testing.T) {
	w := newWorld(t)
	kind := workload.Kinds()[0]
	owner := w.create(kind, rolling)
	w.remember(owner, "web-a", 1, "app:0")
	w.remember(owner, "web-b", 2, "app:1")

	out, errOut, code := w.call("rollout", "diff", "clone/web")
	require.Equal(t, cli.Done, code, errOut)
	assert.Contains(t, out, "from revision 2 (web-b) to the template:\n")
	assert.Contains(t, out, `"app:1" -> "app:2"`)
	out, errOut, code = w.call("rollout", "diff", "clone/web", "--from=1", "--to=2")
	require.Equal(t, cli.Done, code, errOut)
	assert.Contains(t, out, "from revision 1 (web-a) to revision 2 (web-b):\n")
	assert.Contains(t, out, `"app:0" -> "app:1"`)
	out, _, _ = w.call("rollout", "diff", "clone/web", "--from=1", "--to=1")
	assert.Contains(t, out, "  no differences\n")
	_, errOut, code = w.call("rollout", "diff", "clone/web", "--from=7")
	assert.Equal(t, cli.Failed, code)
	assert.Contains(t, errOut, "has no revision 7")
}

func TestWatchTellsOfEachChange(t *testing.T) {
	w := newWorld(t)
	kind := workload.Kinds()[0]
	owner := w.create(kind, rolling)
	w.run(owner, "web-0", "web-a")
	w.run(owner, "web-1", "web-b")
	w.report(kind, 1, "True")
	out, errOut, code := w.call("rollout", "watch", "clone/web", "--timeout=10m")
	assert.Equal(t, cli.Done, code, errOut)
	assert.Equal(t, "CloneSet/web Complete: web-b (update) 1 starting; web-a (current) 1 starting\n", out)
}

func TestWhatCannotBeFoundIsSaid(t *testing.T) {
	w := newWorld(t)
	_, errOut, code := w.call("rollout", "status", "clone/web")
	assert.Equal(t, cli.Failed, code)
	assert.Contains(t, errOut, "error: cloneset/web not found in namespace "+w.client.Namespace)
	_, errOut, code = w.call("rollout", "status")
	assert.Equal(t, cli.Misused, code)
	assert.Contains(t, errOut, "see flotilla rollout status --help")
}

func TestCompletion(t *testing.T) {
	w := newWorld(t)
	w.create(workload.Kinds()[0], rolling)
	for typed, want := range map[string]string{"s": "statefulset/\n", "clone/": "clone/web\n", "ads/": "", "clone/x": "", "deploy/": ""} {
		out, _, code := w.call(cobra.ShellCompNoDescRequestCmd, "rollout", "status", typed)
		assert.Equal(t, cli.Done, code)
		assert.Regexp(t, "^"+want+":", out, typed)
	}
	out, _, _ := w.call(cobra.ShellCompNoDescRequestCmd, "rollout", "status", "clone", "")
	assert.Regexp(t, "^web\n:", out)
}
