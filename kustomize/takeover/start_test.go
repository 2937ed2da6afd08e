package takeover

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/install"
	"github.com/flotilla-project/flotilla/kustomize/test/clitest"
)

// An operator would lead when its process lasts, has made its certificates, and no other has its Lease.
func TestWhatWouldLead(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	manager := object(t, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {namespace: flotilla-system, name: cloneset-manager}\nspec: {replicas: 1}")
	ready := manager.DeepCopy()
	ready.Object["status"] = map[string]any{"replicas": int64(1), "updatedReplicas": int64(1), "availableReplicas": int64(1)}
	certificates := object(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: cloneset-webhook-certs}\ndata: {tls.crt: YQ==}")
	lease := func(holder, renewed string) *unstructured.Unstructured {
		return object(t, "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {namespace: flotilla-system, name: cloneset-manager}\n"+
			"spec: {holderIdentity: "+holder+", leaseDurationSeconds: 15, renewTime: '"+renewed+"'}")
	}
	fresh, stale := "2029-12-31T23:59:50.000000Z", "2029-12-31T23:59:40.000000Z"
	pods := []unstructured.Unstructured{*object(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: cloneset-manager-1}")}
	cases := []struct {
		name  string
		found candidate
		lasts time.Duration
		want  string
	}{
		{"no pod", candidate{manager: manager, stopped: "has no pod yet"}, 0, "cloneset-manager has no pod yet"},
		{"a moment", candidate{manager: manager, secret: certificates, life: "1/0"}, 4 * time.Second, "cloneset-manager has just started"},
		{
			"no certificates", candidate{manager: manager, life: "1/0"}, time.Minute,
			"cloneset-manager has not created its certificates yet. Find the cause in its log: kubectl -n flotilla-system logs deployment/cloneset-manager",
		},
		{"no Lease", candidate{manager: manager, secret: certificates, life: "1/0"}, 5 * time.Second, ""},
		{
			"another leader", candidate{manager: manager, secret: certificates, life: "1/0", pods: pods, lease: lease("other_1", fresh)}, time.Minute,
			"Lease flotilla-system/cloneset-manager is held by other_1",
		},
		{"a leader that is gone", candidate{manager: manager, secret: certificates, life: "1/0", pods: pods, lease: lease("other_1", stale)}, time.Minute, ""},
		{"itself", candidate{manager: manager, secret: certificates, life: "1/0", pods: pods, lease: lease("cloneset-manager-1_2", fresh)}, time.Minute, ""},
		{"it leads since long", candidate{manager: ready, life: "1/0"}, 0, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, c.found.waitsFor(sighting{life: c.found.life, since: now.Add(-c.lasts)}, now))
		})
	}
}

func TestARestartBeginsANewLife(t *testing.T) {
	var seen sighting
	first := time.Unix(100, 0)
	seen.look("a/0", first)
	seen.look("a/0", first.Add(3*time.Second))
	assert.Equal(t, first, seen.since)
	seen.look("a/1", first.Add(4*time.Second))
	assert.Equal(t, first.Add(4*time.Second), seen.since)
}

// A Lease that flags of the Deployment name is the one that counts.
func TestTheLeaseThatFlagsNameCounts(t *testing.T) {
	clitest.NeedsServer(t)
	client := clitest.Objects(t)
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig = &clitest.Administrator
	cluster, err := apply.Connect(flags)
	require.NoError(t, err)
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	if _, err := client.Resource(namespaces).Create(t.Context(), object(t, "{apiVersion: v1, kind: Namespace, metadata: {name: flotilla-system}}"),
		metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
	for resource, text := range map[schema.GroupVersionResource]string{
		deploymentResource(): `
apiVersion: apps/v1
kind: Deployment
metadata: {name: lease-manager}
spec:
  selector: {matchLabels: {app: lease}}
  template:
    metadata: {labels: {app: lease}}
    spec: {containers: [{name: manager, image: i, args: [--leader-election-id=mine, --leader-election-namespace=default]}]}`,
		{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}: `
{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {namespace: default, name: mine}, spec: {holderIdentity: other_1}}`,
	} {
		created := object(t, text)
		if created.GetNamespace() == "" {
			created.SetNamespace("flotilla-system")
		}
		_, err := client.Resource(resource).Namespace(created.GetNamespace()).Create(t.Context(), created, metav1.CreateOptions{})
		require.NoError(t, err)
		t.Cleanup(func() {
			require.NoError(t, client.Resource(resource).Namespace(created.GetNamespace()).Delete(context.Background(), created.GetName(), metav1.DeleteOptions{}))
		})
	}
	h := &handover{cluster: cluster, replacement: install.Replacement{Feature: catalog.Feature{Name: "lease"}}}

	found, err := h.candidate(t.Context())

	require.NoError(t, err)
	found.life, found.secret = "1/0", object(t, "{apiVersion: v1, kind: Secret, metadata: {name: c}, data: {tls.crt: YQ==}}")
	assert.Equal(t, "Lease default/mine is held by other_1", found.waitsFor(sighting{life: "1/0"}, time.Unix(1e9, 0)))
}
