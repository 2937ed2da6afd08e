package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake" //nolint:depguard // one list by a label: demos have a cluster, their tests do not need one

	"github.com/flotilla-project/flotilla/test/install"
)

func TestUsable(t *testing.T) {
	node := func(name, architecture string, change func(*corev1.Node)) corev1.Node {
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		n.Status.NodeInfo.Architecture = architecture
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		if change != nil {
			change(&n)
		}
		return n
	}
	names, platforms := usable([]corev1.Node{
		node("control", "amd64", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Effect: corev1.TaintEffectNoSchedule}} }),
		node("busy", "arm64", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Effect: corev1.TaintEffectPreferNoSchedule}} }),
		node("cordoned", "s390x", func(n *corev1.Node) { n.Spec.Unschedulable = true }),
		node("lost", "s390x", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }),
		node("a", "amd64", nil), node("b", "amd64", nil),
	})

	assert.Equal(t, []string{"busy", "a", "b"}, names)
	assert.Equal(t, []string{"linux/amd64", "linux/arm64"}, platforms)
}

func TestForeign(t *testing.T) {
	assert.Equal(t, []string{"clonesets.apps.kruise.io", "podunavailablebudgets.policy.kruise.io"}, foreign(
		"customresourcedefinition.apiextensions.k8s.io/clonesets.apps.kruise.io\n"+
			"customresourcedefinition.apiextensions.k8s.io/certificates.cert-manager.io\n"+
			"customresourcedefinition.apiextensions.k8s.io/podunavailablebudgets.policy.kruise.io\n"))
	assert.Empty(t, foreign(""))
}

// A demo replaces what a demo has made, and no operator that is in use.
func TestOperatorsInUseAreLeftAlone(t *testing.T) {
	manager := func(name string, labels map[string]string) *appsv1.Deployment {
		labels["app.kubernetes.io/part-of"] = "flotilla"
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: install.Namespace, Name: name, Labels: labels}}
	}
	mine, inUse := manager("jobs-manager", map[string]string{"apps.kruise.io/made-by": "demo"}), manager("cloneset-manager", map[string]string{})

	require.NoError(t, (&demo{api: fake.NewClientset(mine)}).spareOperators(t.Context()))
	err := (&demo{api: fake.NewClientset(mine, inUse)}).spareOperators(t.Context())
	assert.ErrorContains(t, err, "Deployments flotilla-system/cloneset-manager; use another cluster")
}

func TestBothAreNeeded(t *testing.T) {
	for _, of := range [][]string{{"file", ""}, {"", "registry.example"}} {
		require.ErrorContains(t, (&demo{}).join(t.Context(), of[0], of[1]), "KUBECONFIG=file REGISTRY=host/path")
	}
}

// Whoever lent a cluster is told how to get rid of what was installed there.
func TestCleanUp(t *testing.T) {
	d := demo{installed: map[string]bool{"spread": true, "budget": true}}
	assert.Contains(t, d.cleanUp()[0], "make down")
	d.joined = true
	lines := d.cleanUp()
	require.Len(t, lines, 3)
	assert.Contains(t, lines[1], "bin/flotilla uninstall budget spread ")
}

func TestPodsRunWhatTheClusterCanPull(t *testing.T) {
	d := demo{target: install.Target{Registry: "registry.example/team"}}
	assert.Equal(t, "flotilla/demo-app:v2", d.updatedImage())
	d.target.Named = true
	assert.Equal(t, "registry.example/team/flotilla/demo-app:v2", d.updatedImage())
}
