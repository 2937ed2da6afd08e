package rollout_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/workload"
)

func TestDrainReportsConditionsOfItsNode(t *testing.T) {
	w := newWorld(t)
	node := w.nodeWithAPod()

	_, errOut, code := w.call("drain", node, "--report-node-conditions", "--dry-run=server")
	require.Equal(t, cli.Done, code, errOut)
	assert.Empty(t, w.conditions(node), "a dry run writes none")
	_, errOut, code = w.call("drain", node)
	require.Equal(t, cli.Done, code, errOut)
	assert.Empty(t, w.conditions(node), "without the flag there are none")

	_, errOut, code = w.call("drain", node, "--report-node-conditions", "--timeout=10m")
	require.Equal(t, cli.Done, code, errOut)
	assert.Empty(t, errOut)
	assert.Equal(t, map[corev1.NodeConditionType]string{
		corev1.NodeReady: "True KubeletReady", corev1.NodeDrainInProgress: "False DrainCompleted", corev1.NodeDrained: "True DrainCompleted",
	}, w.conditionsAfterReady(node))
	w.clear(node)
	assert.Equal(t, map[corev1.NodeConditionType]string{corev1.NodeReady: "True KubeletReady"}, w.conditions(node))
}

// The conditions of a drain that is interrupted while a budget refuses an eviction do not stay those of a drain that runs.
func TestAnInterruptedDrainEndsItsConditions(t *testing.T) {
	w := newWorld(t)
	node := w.nodeWithAPod()
	_, err := w.client.Core.PolicyV1().PodDisruptionBudgets(w.client.Namespace).Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "floor"}, Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{}, MaxUnavailable: new(intstr.FromInt32(0)),
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var during map[corev1.NodeConditionType]string
	out := &listener{text: " waits: ", then: func() {
		if during == nil {
			during = w.conditions(node)
			cancel()
		}
	}}

	_, code := w.callTo(ctx, out, "drain", node, "--report-node-conditions")

	assert.Equal(t, cli.Interrupted, code, out.String())
	assert.Equal(t, map[corev1.NodeConditionType]string{
		corev1.NodeDrainInProgress: "True AdminRequested", corev1.NodeDrained: "False AdminRequested",
	}, during)
	assert.Equal(t, map[corev1.NodeConditionType]string{
		corev1.NodeDrainInProgress: "False DrainFailed", corev1.NodeDrained: "False DrainFailed",
	}, w.conditions(node))
}

func TestADrainWithoutTheRightToWriteConditionsEmptiesItsNode(t *testing.T) {
	w := newWorld(t)
	node := w.nodeWithAPod()
	user := "drainer-of-" + w.client.Namespace
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "patch"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list"}},
		{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}},
	}}
	_, err := w.client.Core.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = w.client.Core.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	w.flags = flagsFor(w.client.Namespace)
	w.flags.Impersonate = &user
	w.awaitRights(role.Rules)

	out, errOut, code := w.call("drain", node, "--report-node-conditions", "--timeout=10m")

	require.Equal(t, cli.Done, code, errOut)
	assert.Contains(t, out, "node/"+node+" drained\n")
	assert.Contains(t, errOut, "Warning: conditions DrainInProgress and Drained of node "+node+" were not written: ")
	assert.Contains(t, errOut, `cannot patch resource "nodes/status"`)
	assert.Empty(t, w.conditions(node))
}

// awaitRights waits until the server, which learns of roles by watches, grants the user of the commands what the rules say.
func (w *world) awaitRights(rules []rbacv1.PolicyRule) {
	w.t.Helper()
	cluster, err := apply.Connect(w.flags)
	require.NoError(w.t, err)
	var rights []apply.Right
	for _, rule := range rules {
		resource := schema.GroupVersionResource{Group: rule.APIGroups[0], Resource: rule.Resources[0]}
		rights = append(rights, apply.Right{Resource: resource, Verbs: rule.Verbs})
	}
	require.NoError(w.t, apply.Await(w.t.Context(), 5*time.Minute, func(string) {}, func(ctx context.Context) (bool, string, error) {
		missing := cluster.Has(ctx, rights...)
		return missing == nil, fmt.Sprint(missing), nil
	}))
}

// nodeWithAPod makes a node on which a pod of a CloneSet runs, and returns its name.
func (w *world) nodeWithAPod() string {
	w.t.Helper()
	node, err := w.client.Core.CoreV1().Nodes().Create(w.t.Context(),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: "node-"}}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	w.runOn(node.Name, w.create(workload.Kinds()[0], rolling), "web-0")
	return node.Name
}

// conditions returns the status and the reason of each condition of a node.
func (w *world) conditions(node string) map[corev1.NodeConditionType]string {
	w.t.Helper()
	read, err := w.client.Core.CoreV1().Nodes().Get(w.t.Context(), node, metav1.GetOptions{})
	require.NoError(w.t, err)
	found := map[corev1.NodeConditionType]string{}
	for _, c := range read.Status.Conditions {
		found[c.Type] = string(c.Status) + " " + c.Reason
	}
	return found
}

// conditionsAfterReady returns the conditions of a node after its kubelet has written its own one.
func (w *world) conditionsAfterReady(node string) map[corev1.NodeConditionType]string {
	w.t.Helper()
	w.patchStatus(node, `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady"}]}}`)
	return w.conditions(node)
}

// clear removes the conditions of a drain, as the page about drains shows.
func (w *world) clear(node string) {
	w.t.Helper()
	w.patchStatus(node, `{"status":{"conditions":[{"type":"DrainInProgress","$patch":"delete"},{"type":"Drained","$patch":"delete"}]}}`)
}

func (w *world) patchStatus(node, patch string) {
	w.t.Helper()
	_, err := w.client.Core.CoreV1().Nodes().Patch(w.t.Context(), node, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	require.NoError(w.t, err)
}
