package rollout_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/explain"
	"github.com/flotilla-project/flotilla/kustomize/progress"
	"github.com/flotilla-project/flotilla/kustomize/workload"
)

func TestExplainReadsWhatIsInTheWay(t *testing.T) {
	w := newWorld(t)
	kind := workload.Kinds()[0]
	owner := w.create(kind, rolling)
	w.run(owner, "web-0", "web-b")
	w.report(kind, 0, "False")
	pods := w.client.Core.CoreV1().Pods(w.client.Namespace)
	pod, err := pods.Get(t.Context(), "web-0", metav1.GetOptions{})
	require.NoError(t, err)
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "main", Image: "app:2", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}},
	}}
	_, err = pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	require.NoError(t, err)

	out, errOut, code := w.call("explain", "clone/web")
	require.Equal(t, cli.Done, code, errOut)
	assert.Equal(t, "CloneSet web in namespace "+w.client.Namespace+` is Progressing: 0 of 1 pods updated, 2 of 2 available: MaxUnavailable: web-x is awaited.

- Pod web-0: the image app:2 of container main cannot be pulled.
  Correct the image, its pull policy or the pull secrets, or roll back: flotilla rollout undo cloneset/web

- Its partition keeps 1 of 2 pods at an older revision.
  To continue, lower rollingUpdate.partition; 0 updates all.
`, out)
	out, errOut, code = w.call("explain", "clone", "web", "-o", "json")
	require.Equal(t, cli.Done, code, errOut)
	var e explain.Explanation
	require.NoError(t, json.Unmarshal([]byte(out), &e))
	assert.Equal(t, progress.Progressing, e.Phase)
	assert.Equal(t, []string{"pod/web-0"}, e.Findings[0].Objects)
	assert.Empty(t, e.Unread)
}

func TestDrainLeavesPodsOfDaemonSets(t *testing.T) {
	w := newWorld(t)
	node, err := w.client.Core.CoreV1().Nodes().Create(t.Context(),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: "node-"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	for _, kind := range workload.Kinds() {
		w.runOn(node.Name, w.create(kind, rolling), kind.Short())
	}

	out, errOut, code := w.call("drain", node.Name, "--dry-run")
	require.Equal(t, cli.Done, code, errOut)
	in := "pod " + w.client.Namespace + "/"
	assert.Equal(t, in+"cloneset is to be evicted\n"+in+"daemonset stays (pod of DaemonSet web)\n"+in+"statefulset is to be evicted\n", out)

	out, errOut, code = w.call("drain", node.Name, "--timeout=10m")
	require.Equal(t, cli.Done, code, errOut)
	assert.Contains(t, out, "node/"+node.Name+" drained\n")
	left, err := w.client.Core.CoreV1().Pods(w.client.Namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, left.Items, 1)
	assert.Equal(t, "daemonset", left.Items[0].Name)
	node, err = w.client.Core.CoreV1().Nodes().Get(t.Context(), node.Name, metav1.GetOptions{})
	require.NoError(t, err)
	assert.True(t, node.Spec.Unschedulable)
}

func TestDrainWaitsForBudgetsAndAsksBeforeItDestroys(t *testing.T) {
	w := newWorld(t)
	node, err := w.client.Core.CoreV1().Nodes().Create(t.Context(),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: "node-"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	w.runOn(node.Name, nil, "lonely")
	_, errOut, code := w.call("drain", node.Name)
	assert.Equal(t, cli.Failed, code)
	assert.Contains(t, errOut, w.client.Namespace+"/lonely: it has no controller that would recreate it")

	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "floor"}, Spec: policyv1.PodDisruptionBudgetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, MaxUnavailable: new(intstr.FromInt32(0)),
	}}
	budgets := w.client.Core.PolicyV1().PodDisruptionBudgets(w.client.Namespace)
	budget, err = budgets.Create(t.Context(), budget, metav1.CreateOptions{})
	require.NoError(t, err)
	budget.Status.ObservedGeneration = budget.Generation
	_, err = budgets.UpdateStatus(t.Context(), budget, metav1.UpdateOptions{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &listener{text: w.client.Namespace + "/lonely waits: ", then: cancel}
	_, code = w.callTo(ctx, out, "drain", node.Name, "--force")
	assert.Equal(t, cli.Interrupted, code, out.String())
	assert.Contains(t, out.String(), out.text)
}

// A reader can type every command of the page.
func TestEveryCommandOfThePageRuns(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "rollouts.md"))
	require.NoError(t, err)
	w := newWorld(t)
	_, err = w.client.Core.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	for _, kind := range workload.Kinds() {
		owner := w.create(kind, rolling)
		w.remember(owner, kind.Short()+"-a", 1, "app:1")
		w.remember(owner, kind.Short()+"-b", 2, "app:2")
		w.runOn("node-1", owner, kind.Short())
	}
	ran := 0
	for line := range strings.Lines(string(page)) {
		command, found := strings.CutPrefix(line, "    flotilla ")
		if !found {
			continue
		}
		ran++
		for _, kind := range workload.Kinds() {
			w.report(kind, 1, "True") // the operator has followed the edit before
		}
		out, errOut, code := w.call(strings.Fields(command)...)
		assert.Equal(t, cli.Done, code, "%s: %s", command, errOut)
		assert.NotEmpty(t, out, command)
	}
	assert.Greater(t, ran, 10)
}
