package takeover_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/test/clitest"
)

const (
	podTemplate = `{metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: "nginx:1.14.2"}]}}`
	selector    = `{matchLabels: {app: web}}`
)

// exchanges are the features that can be given back, with releases of OpenKruise that store v1alpha1 alone, or v1beta1 beside it.
var exchanges = []struct {
	feature, release, resource, kind, spec, status string
	// gates are those of OpenKruise's manager after the return.
	gates string
}{
	{
		"cloneset", "1.9.0", "clonesets", "CloneSet",
		`{replicas: 3, selector: ` + selector + `, template: ` + podTemplate + `, scaleStrategy: {podsToDelete: [web-1]}, updateStrategy: {partition: 20%, maxUnavailable: 1, type: InPlaceIfPossible}}`,
		`{replicas: 3, updateRevision: web-1, labelSelector: app=web}`, "ImagePullJobGate=true",
	},
	{
		"statefulset", "1.8.4", "statefulsets", "StatefulSet",
		`{replicas: 3, serviceName: web, selector: ` + selector + `, template: ` + podTemplate + `, reserveOrdinals: [1], updateStrategy: {rollingUpdate: {partition: 1, podUpdatePolicy: InPlaceIfPossible}}}`,
		`{replicas: 3, updateRevision: web-1}`, "ImagePullJobGate=true",
	},
	{
		"daemonset", "1.9.0", "daemonsets", "DaemonSet", `{selector: ` + selector + `, template: ` + podTemplate + `}`,
		`{currentNumberScheduled: 3, desiredNumberScheduled: 3, numberMisscheduled: 0, numberReady: 3, updatedNumberScheduled: 3}`, "ImagePullJobGate=true",
	},
	{
		"spread", "1.9.0", "workloadspreads", "WorkloadSpread",
		`{targetRef: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: web}, subsets: [{name: a, maxReplicas: 30%}, {name: b, patch: {metadata: {labels: {zone: b}}}}]}`,
		`{observedGeneration: 1}`, "ImagePullJobGate=true,WorkloadSpread=true",
	},
	{
		"budget", "1.8.4", "podunavailablebudgets", "PodUnavailableBudget", `{selector: ` + selector + `, maxUnavailable: 25%}`,
		`{currentAvailable: 3, desiredAvailable: 2, totalReplicas: 3, unavailableAllowed: 1, disruptedPods: {web-1: "2026-11-20T10:32:08Z"}}`,
		"ImagePullJobGate=true,PodUnavailableBudgetDeleteGate=true",
	},
	{
		"jobs", "1.7.3", "broadcastjobs", "BroadcastJob", `{template: ` + podTemplate + `, parallelism: 50%, completionPolicy: {type: Always, ttlSecondsAfterFinished: 60}}`,
		`{active: 3, desired: 3, phase: running}`, "ImagePullJobGate=true",
	},
}

// Each feature comes back as it was: OpenKruise writes, admits and stores its objects again, which nobody has written, and
// nothing of Flotilla's is left but its namespace.
func TestEachFeatureComesBack(t *testing.T) {
	clitest.NeedsServer(t)
	for _, c := range exchanges {
		t.Run(c.feature+" of "+c.release, func(t *testing.T) {
			manager(t)
			account(t)
			kind := oldKind(t, c.release, c.resource)
			hooks := oldWebhooks(t, kind)
			create := func(name string) *unstructured.Unstructured {
				object := parsed(t, fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: %s, annotations: {of: user}}, spec: %s, status: %s}",
					kind.stored.GroupVersion(), c.kind, name, c.spec, c.status))
				return kind.create(t, object)
			}
			web := create("web")
			pod := podOf(t, web)
			objects := []string{kind.path("web"), "/api/v1/namespaces/default/pods/" + pod}
			before, bytes := whole(t), raw(t, objects...)
			asked := func() error {
				if err := mayWrite(t, kind.old.Objects, kind.stored, "web"); err != nil {
					return err
				}
				if hooks.Load() == 0 {
					return errors.New("OpenKruise's webhook is not asked")
				}
				return nil
			}
			eventually(t, asked)

			output, code := call(t, clitest.Administrator, "takeover", c.feature, "--wait=false", "--settle=0", "--timeout=10m")
			require.Equal(t, cli.Done, code, output)
			withoutWebhooksOf(t, c.feature, kind)
			taken := kind.definition(t)
			assert.True(t, apply.Guarded(taken))
			assert.Equal(t, kind.stored.Version, apply.StorageVersion(taken))
			assert.True(t, apierrors.IsForbidden(mayWrite(t, kind.old.Objects, kind.stored, "web")))
			hooks.Store(0)
			later := create("later")
			assert.Zero(t, hooks.Load(), "OpenKruise's webhook is not asked")
			output, code = call(t, clitest.Administrator, "takeover", c.feature, "--wait=false", "--settle=0", "--timeout=10m")
			require.Equal(t, cli.Done, code, "again: %s", output)

			output, code = call(t, clitest.Administrator, "takeover", c.feature, "--undo", "--wait=false", "--settle=0", "--timeout=10m")

			require.Equal(t, cli.Done, code, output)
			after := whole(t)
			for name := range after {
				if definition, isCRD := strings.CutPrefix(name, "CustomResourceDefinition "); isCRD && before[name] == nil {
					delete(after, name) // OpenKruise does not have it, and there may be objects
					t.Cleanup(func() { withoutCRD(t, definition) })
				}
			}
			for name := range after {
				assert.Equal(t, before[name], after[name], name)
			}
			assert.Subset(t, slices.Collect(maps.Keys(after)), slices.Collect(maps.Keys(before)), "nothing is lost")
			assert.Equal(t, bytes, raw(t, objects...), "they were not written, and nobody can tell that they changed hands")
			stays, err := clitest.Objects(t).Resource(kind.stored).Namespace("default").Get(t.Context(), "later", metav1.GetOptions{})
			require.NoError(t, err)
			assert.Equal(t, later.GetResourceVersion(), stays.GetResourceVersion())
			assert.Equal(t, later.Object["spec"], stays.Object["spec"])
			assert.Equal(t, []string{kind.stored.Version}, apply.StoredVersions(kind.definition(t)))
			assert.Equal(t, []string{"--v=4", "--feature-gates=" + c.gates}, argumentsOfManager(t))
			eventually(t, func() error {
				return errors.Join(asked(), kind.servedAsBefore(t))
			})
			require.NoError(t, mayWrite(t, kind.old.Objects, pods, pod))
			output, _ = call(t, clitest.Administrator, "status")
			assert.NotContains(t, output, "was interrupted")
			assert.Contains(t, output, "OpenKruise manages its kinds: flotilla takeover "+c.feature+"\n")
		})
	}
}

// The node agents cannot change hands, so that they cannot be given back either.
func TestTheNodeAgentIsNotGivenBack(t *testing.T) {
	clitest.NeedsServer(t)

	output, code := call(t, clitest.Administrator, "takeover", "daemon", "--undo")

	assert.Equal(t, cli.Misused, code)
	assert.Contains(t, output, "daemon cannot be taken over while the node agent of OpenKruise runs")
}
