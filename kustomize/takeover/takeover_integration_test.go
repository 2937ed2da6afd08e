package takeover_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/install"
	"github.com/flotilla-project/flotilla/kustomize/test/clitest"
)

// CloneSets change hands and back while OpenKruise's manager goes on: SidecarSets stay its own.
func TestCloneSetsChangeHandsAndBack(t *testing.T) {
	clitest.NeedsServer(t)
	client := clitest.Objects(t)
	converter := clitest.NewConverter(t)
	old := oldManager(t)
	openKruise(t, old, "1.9.0")
	t.Cleanup(func() { withoutOpenKruise(t) })
	require.NoError(t, old.Pass(t.Context()))
	before := everything(t)

	output, code := call(t, clitest.Administrator, "takeover", "cloneset", "--dry-run")
	require.Equal(t, cli.Done, code, output)
	assert.Contains(t, output, "  CloneSet: 1 object, 4 pods\n")
	assert.Contains(t, output, "    MutatingWebhookConfiguration kruise-mutating-webhook-configuration: loses mcloneset.kb.io\n")
	assert.Contains(t, output, "converted by Service flotilla-system/cloneset-webhook (before: none)\n")
	assert.Contains(t, output, "CustomResourceDefinition clonesets.apps.kruise.io: stores objects as v1alpha1 as before, until flotilla takeover --finish\n")
	assert.Equal(t, before, everything(t), "a dry run writes nothing")
	require.NoError(t, touch(t, old, pods, "web-2f49m"), "the old manager still works")
	before = everything(t)

	output, code = call(t, clitest.Administrator, "takeover", "cloneset", "--wait=false", "--settle=0", "--timeout=10m")
	require.Equal(t, cli.Done, code, output)
	assert.Contains(t, output, "4 pods: no changes and no restarts\n")
	assert.Contains(t, output, "cloneset: to go back while OpenKruise is installed: flotilla takeover cloneset --undo\n")
	assert.Equal(t, []string{"v1alpha1"}, storedVersions(t), "OpenKruise's CRD can come back")

	withoutWebhooks(t)
	require.NoError(t, old.Pass(t.Context()), "the old manager starts again")
	for _, resource := range webhooks {
		configuration, err := client.Resource(resource).Get(t.Context(), oldName[resource.Resource], metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, kept[resource.Resource], rules(t, configuration), "entries of other kinds stay, and those of CloneSets do not come back")
	}
	assert.Equal(t, "cloneset-webhook", converterOf(t))
	for what, err := range map[string]error{
		"a set":        touch(t, old, sets, "web"),
		"a pod":        touch(t, old, pods, "web-2f49m"),
		"a revision":   touch(t, old, revisions, "web-d554877cb"),
		"a deletion":   old.Objects.Resource(pods).Namespace("default").Delete(t.Context(), "web-2f49m", metav1.DeleteOptions{}),
		"a new pod":    create(t, old.Objects, copyOf(t, "Pod", "web-2f49m", "web-new")),
		"pod's status": touchStatus(t, old, pods, "web-2f49m"),
		"set's status": touchStatus(t, old, sets, "web"),
	} {
		assert.True(t, apierrors.IsForbidden(err), "%s: %v", what, err)
	}
	eventually(t, func() error {
		err := client.Resource(definitions).Delete(t.Context(), "clonesets.apps.kruise.io", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		if !apierrors.IsForbidden(err) {
			return errors.Join(errors.New("the CRD can be deleted"), err)
		}
		return nil
	})
	require.NoError(t, touch(t, old, pods, "alone"), "pods of nobody's are free")
	ofAnother := copyOf(t, "CloneSet", "web", "subset")
	ofAnother.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: "apps.kruise.io/v1alpha1", Kind: "UnitedDeployment", Name: "united", UID: "1", Controller: new(true),
	}})
	require.NoError(t, create(t, old.Objects, ofAnother), "a UnitedDeployment still makes CloneSets")
	require.NoError(t, touch(t, old, sets, "subset"))
	assert.True(t, apierrors.IsForbidden(touchStatus(t, old, sets, "subset")), "the status of any CloneSet is Flotilla's")
	require.NoError(t, client.Resource(sets).Namespace("default").Delete(t.Context(), "subset", metav1.DeleteOptions{}))

	output, code = call(t, clitest.Administrator, "takeover", "cloneset", "--wait=false", "--settle=0", "--timeout=10m")
	require.Equal(t, cli.Done, code, "again: %s", output)
	assert.Equal(t, "cloneset-webhook", converterOf(t))

	withoutWebhooks(t)
	writeAsFlotilla(t, converter)
	output, code = call(t, clitest.Administrator, "takeover", "cloneset", "--undo", "--wait=false", "--settle=0", "--timeout=10m")
	require.Equal(t, cli.Done, code, output)
	assert.Contains(t, output, "cloneset: clonesets.apps.kruise.io stored as v1alpha1: 2 objects migrated")
	assert.Equal(t, []string{"v1alpha1"}, storedVersions(t))
	eventually(t, func() error { return touch(t, old, pods, "web-2f49m") })
	require.NoError(t, old.Pass(t.Context()))
	later, err := old.Objects.Resource(sets).Namespace("default").Get(t.Context(), "later", metav1.GetOptions{})
	require.NoError(t, err, "what was written meanwhile is there")
	replicas, _, _ := unstructured.NestedInt64(later.Object, "spec", "replicas")
	assert.EqualValues(t, 2, replicas)
	require.NoError(t, client.Resource(sets).Namespace("default").Delete(t.Context(), "later", metav1.DeleteOptions{}))
	assert.Empty(t, converterOf(t), "as in OpenKruise's CRD")
	after := everything(t)
	for name := range before {
		if name != "Pod web-2f49m" && name != "Pod alone" {
			assert.Equal(t, before[name], after[name], name)
		}
	}
	output, code = call(t, clitest.Administrator, "takeover", "cloneset", "--undo")
	assert.Equal(t, cli.Failed, code)
	assert.Contains(t, output, "the feature was not taken over, or was given back")
}

// What a webhook for all pods does is turned off by its gate, and a CRD that OpenKruise did not have is guarded too.
func TestGatesAreTurnedOffAndOn(t *testing.T) {
	clitest.NeedsServer(t)
	client := clitest.Objects(t)
	manager(t)
	account(t)
	t.Cleanup(func() { withoutSpreads(t) })
	const kinds = `{"workloads":[{"Group":"example.io","Kind":"GameServerSet"}]}`
	const key = "WorkloadSpread_Watch_Custom_Workload_WhiteList"
	configMaps := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"})
	_, err := configMaps.Namespace("kruise-system").Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "kruise-configuration"},
		"data": map[string]any{key: kinds, "other": "x"},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, configMaps.Namespace("kruise-system").Delete(context.Background(), "kruise-configuration", metav1.DeleteOptions{}))
	})
	output, code := call(t, clitest.Administrator, "takeover", "spread", "--wait=false", "--settle=0", "--timeout=10m")
	require.Equal(t, cli.Done, code, output)
	assert.Equal(t, []string{"--v=4", "--feature-gates=ImagePullJobGate=true,WorkloadSpread=false"}, argumentsOfManager(t))
	crd, err := client.Resource(definitions).Get(t.Context(), "workloadspreads.apps.kruise.io", metav1.GetOptions{})
	require.NoError(t, err)
	assert.True(t, apply.Guarded(crd))
	copied, err := configMaps.Namespace(install.Namespace).Get(t.Context(), "kruise-configuration", metav1.GetOptions{})
	require.NoError(t, err, "its custom workloads go on being spread")
	assert.Equal(t, map[string]any{key: kinds}, copied.Object["data"])
	output, code = call(t, clitest.Administrator, "install", "spread", "--wait=false")
	require.Equal(t, cli.Done, code, "nothing of it is somebody else's: %s", output)
	crd, err = client.Resource(definitions).Get(t.Context(), "workloadspreads.apps.kruise.io", metav1.GetOptions{})
	require.NoError(t, err)
	assert.True(t, apply.Guarded(crd), "to install again keeps the guard")
	output, code = call(t, clitest.Administrator, "install", "spread", "--only-namespace", "default", "--wait=false")
	assert.Equal(t, cli.Failed, code)
	assert.Contains(t, output, "spread was taken over from OpenKruise: with --only-namespace default, its kinds have no controller in the other namespaces")

	output, code = call(t, clitest.Administrator, "takeover", "spread", "--undo", "--wait=false", "--settle=0", "--timeout=10m")
	require.Equal(t, cli.Done, code, output)
	assert.Equal(t, []string{"--v=4", "--feature-gates=ImagePullJobGate=true,WorkloadSpread=true"}, argumentsOfManager(t))
}

// withoutSpreads deletes the CRD of WorkloadSpreads; the policy against that may have just gone.
func withoutSpreads(t *testing.T) {
	t.Helper()
	assert.NoError(t, apply.Await(context.Background(), 5*time.Minute, func(string) {}, func(ctx context.Context) (bool, string, error) {
		err := clitest.Objects(t).Resource(definitions).Delete(ctx, "workloadspreads.apps.kruise.io", metav1.DeleteOptions{})
		return err == nil || apierrors.IsNotFound(err), fmt.Sprint(err), nil
	}))
}

// On a cluster in use some pod always changes. That holds up no other feature, and who did it is told.
func TestAPodThatChangesHoldsUpNoOtherFeature(t *testing.T) {
	clitest.NeedsServer(t)
	client := clitest.Objects(t)
	old := oldManager(t)
	openKruise(t, old, "1.8.4")
	t.Cleanup(func() { withoutSpreads(t); withoutOpenKruise(t) })
	require.NoError(t, old.Pass(t.Context()))
	write := func(written string) {
		if !strings.HasPrefix(written, "cloneset: to go back") {
			return
		}
		_, err := client.Resource(pods).Namespace("default").Patch(t.Context(), "web-2f49m", types.MergePatchType,
			[]byte(`{"metadata": {"labels": {"tier": "front"}}}`), metav1.PatchOptions{FieldManager: "autoscaler"})
		assert.NoError(t, err)
	}

	output, code := commands().CallWatched(t, clitest.Administrator, write, "takeover", "cloneset", "spread", "--wait=false", "--settle=0", "--timeout=10m")

	assert.Equal(t, cli.NotSo, code, output)
	assert.Contains(t, output, "4 pods; these changed while the command ran:\n  default/web-2f49m was written by autoscaler\n")
	assert.Contains(t, output, "spread: to go back while OpenKruise is installed: flotilla takeover spread --undo\n4 pods: no changes and no restarts\n")
	assert.Contains(t, output, "error: pods changed while the command ran (1 changes, listed above); check who changed them\n")
	output, code = call(t, clitest.Administrator, "takeover", "cloneset", "spread", "--undo", "--wait=false", "--settle=0", "--timeout=10m")
	require.Equal(t, cli.Done, code, output)
}

func TestNothingIsBegunThatCannotBeEnded(t *testing.T) {
	clitest.NeedsServer(t)
	cases := []struct {
		name, kubeconfig string
		args             []string
		code             cli.Code
		want             string
	}{
		{"the node agent", clitest.Administrator, []string{"daemon"}, cli.Misused, "both would act on a node"},
		{"no such feature", clitest.Administrator, []string{"sidecarset"}, cli.Misused, `unknown feature "sidecarset"`},
		{"both ways", clitest.Administrator, []string{"jobs", "--dry-run", "--undo"}, cli.Misused, "--dry-run cannot be used with --undo"},
		{"back and for good", clitest.Administrator, []string{"jobs", "--finish", "--undo"}, cli.Misused, "--undo and --finish cannot be used together"},
		{"the end of nothing", clitest.Administrator, []string{"--finish", "all"}, cli.Failed, "no takeover from OpenKruise was found"},
		{"the end of another", clitest.Administrator, []string{"--finish", "sidecarset"}, cli.Misused, `unknown feature "sidecarset"`},
		{"one namespace", clitest.Administrator, []string{"jobs", "--only-namespace", "team"}, cli.Misused, "unknown flag: --only-namespace"},
		{"no right to look", clitest.Nobody, []string{"jobs", "--dry-run"}, cli.Failed, "ask an administrator of the cluster for this permission"},
		{"nothing to give back", clitest.Administrator, []string{"jobs", "--undo"}, cli.Failed, "the feature was not taken over"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			output, code := call(t, c.kubeconfig, append([]string{"takeover"}, c.args...)...)
			assert.Equal(t, c.code, code, output)
			assert.Contains(t, output, c.want)
			assert.NotContains(t, output, "run the command again", "it would refuse again")
		})
	}
}
