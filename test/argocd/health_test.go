package argocd_test

import (
	"fmt"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	budgetv1alpha1 "github.com/flotilla-project/flotilla/budget/api/v1alpha1"
	budgetv1beta1 "github.com/flotilla-project/flotilla/budget/api/v1beta1"
	clonesetv1alpha1 "github.com/flotilla-project/flotilla/cloneset/api/v1alpha1"
	clonesetv1beta1 "github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	daemonv1alpha1 "github.com/flotilla-project/flotilla/daemon/api/v1alpha1"
	daemonv1beta1 "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	daemonsetv1alpha1 "github.com/flotilla-project/flotilla/daemonset/api/v1alpha1"
	daemonsetv1beta1 "github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
	jobsv1alpha1 "github.com/flotilla-project/flotilla/jobs/api/v1alpha1"
	jobsv1beta1 "github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/kustomize"
	"github.com/flotilla-project/flotilla/kustomize/render"
	spreadv1alpha1 "github.com/flotilla-project/flotilla/spread/api/v1alpha1"
	spreadv1beta1 "github.com/flotilla-project/flotilla/spread/api/v1beta1"
	statefulsetv1alpha1 "github.com/flotilla-project/flotilla/statefulset/api/v1alpha1"
	statefulsetv1beta1 "github.com/flotilla-project/flotilla/statefulset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/argocd"
)

// types make an empty object of a kind in a version.
func types(kind, version string) any {
	return map[string]any{
		"CloneSet v1alpha1": new(clonesetv1alpha1.CloneSet), "CloneSet v1beta1": new(clonesetv1beta1.CloneSet),
		"StatefulSet v1alpha1": new(statefulsetv1alpha1.StatefulSet), "StatefulSet v1beta1": new(statefulsetv1beta1.StatefulSet),
		"DaemonSet v1alpha1": new(daemonsetv1alpha1.DaemonSet), "DaemonSet v1beta1": new(daemonsetv1beta1.DaemonSet),
		"NodeImage v1alpha1": new(daemonv1alpha1.NodeImage), "NodeImage v1beta1": new(daemonv1beta1.NodeImage),
		"ContainerRecreateRequest v1alpha1": new(daemonv1alpha1.ContainerRecreateRequest),
		"ContainerRecreateRequest v1beta1":  new(daemonv1beta1.ContainerRecreateRequest),
		"BroadcastJob v1alpha1":             new(jobsv1alpha1.BroadcastJob), "BroadcastJob v1beta1": new(jobsv1beta1.BroadcastJob),
		"AdvancedCronJob v1alpha1": new(jobsv1alpha1.AdvancedCronJob), "AdvancedCronJob v1beta1": new(jobsv1beta1.AdvancedCronJob),
		"ImagePullJob v1alpha1": new(jobsv1alpha1.ImagePullJob), "ImagePullJob v1beta1": new(jobsv1beta1.ImagePullJob),
		"ImageListPullJob v1alpha1": new(jobsv1alpha1.ImageListPullJob), "ImageListPullJob v1beta1": new(jobsv1beta1.ImageListPullJob),
		"WorkloadSpread v1alpha1": new(spreadv1alpha1.WorkloadSpread), "WorkloadSpread v1beta1": new(spreadv1beta1.WorkloadSpread),
		"PodUnavailableBudget v1alpha1": new(budgetv1alpha1.PodUnavailableBudget), "PodUnavailableBudget v1beta1": new(budgetv1beta1.PodUnavailableBudget),
	}[kind+" "+version]
}

// state is an object as its operator leaves it, and the health that Argo CD must show for it.
type state struct {
	name, object string
	want         argocd.Health
}

// checkStates runs the kind's check on all states. Both versions have the fields that the checks read; where a field
// has another place in v1alpha1, the state says only v1beta1.
func checkStates(t *testing.T, kind string, states []state, versions ...string) {
	t.Helper()
	checks, err := argocd.Checks()
	require.NoError(t, err)
	group := "apps.kruise.io"
	if kind == "PodUnavailableBudget" {
		group = "policy.kruise.io"
	}
	script := checks[schema.GroupKind{Group: group, Kind: kind}]
	require.NotEmpty(t, script)
	for _, version := range versions {
		for _, s := range states {
			t.Run(version+" "+s.name, func(t *testing.T) {
				manifest := fmt.Sprintf("apiVersion: %s/%s\nkind: %s\n%s", group, version, kind, s.object)
				require.NoError(t, yaml.UnmarshalStrict([]byte(manifest), types(kind, version)), "no such object")
				var object map[string]any
				require.NoError(t, yaml.Unmarshal([]byte(manifest), &object))
				got, err := argocd.Evaluate(script, object)
				require.NoError(t, err)
				assert.Equal(t, s.want, got)
			})
		}
	}
}

// set returns a workload at generation 2 with three pods.
func set(spec, status string) string {
	return "metadata: {name: web, generation: 2}\nspec: {replicas: 3, " + spec + "}\nstatus: {observedGeneration: 2, " + status + "}\n"
}

// conditions that every set shares.
const (
	done       = `{type: Ready, status: "True", reason: Available, message: all pods are up to date and available}`
	underWay   = `{type: Ready, status: "False", reason: Progressing, message: 1 of 3 pods available}, {type: Reconciling, status: "True", reason: Progressing, message: 1 of 3 pods available}`
	badImage   = `{type: Ready, status: "False", reason: ContainerPending, message: "2 of 3 pods available, 3 of 3 updated; ErrImagePull (web-x, container main)"}, {type: Reconciling, status: "True", reason: ContainerPending, message: m}`
	tooLate    = `{type: Ready, status: "False", reason: ProgressDeadlineExceeded, message: "2 of 3 pods available, 3 of 3 updated; ErrImagePull (web-x, container main)"}, {type: Stalled, status: "True", reason: ProgressDeadlineExceeded, message: "2 of 3 pods available, 3 of 3 updated; ErrImagePull (web-x, container main)"}`
	invalid    = `{type: Ready, status: "False", reason: InvalidSpec, message: bad partition}, {type: Stalled, status: "True", reason: InvalidSpec, message: bad partition}`
	paused     = `{type: Ready, status: "True", reason: Paused, message: the update is paused; 2 pods are not updated}`
	quota      = `{type: FailedScale, status: "True", reason: Error, message: exceeded quota}, {type: Ready, status: "False", reason: FailedScale, message: exceeded quota}, {type: Reconciling, status: "True", reason: FailedScale, message: exceeded quota}`
	deadline   = `{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: timed out}`
	heldByUser = `{type: Progressing, status: "True", reason: ProgressPartitionAvailable, message: CloneSet has been paused due to partition ready}`
)

func setStates() []state {
	counts := func(replicas, updated int) string {
		return fmt.Sprintf("replicas: %d, readyReplicas: %d, updatedReplicas: %d", replicas, replicas, updated)
	}
	with := func(replicas, updated int, conditions string) string {
		return set("", counts(replicas, updated)+", conditions: ["+conditions+"]")
	}
	return []state{
		{"created", "metadata: {name: web, generation: 1}\nspec: {replicas: 3}\n", argocd.Health{Status: "Progressing", Message: "the operator has yet to observe the latest spec"}},
		{"edited a moment ago", "metadata: {name: web, generation: 3}\nspec: {}\nstatus: {observedGeneration: 2, conditions: [" + done + "]}\n", argocd.Health{Status: "Progressing", Message: "the operator has yet to observe the latest spec"}},
		{"not yet judged", with(0, 0, ""), argocd.Health{Status: "Progressing", Message: "waiting for condition Ready"}},
		{"progressing", with(3, 1, underWay), argocd.Health{Status: "Progressing", Message: "1 of 3 pods available"}},
		{"ready", with(3, 3, done), argocd.Health{Status: "Healthy", Message: "all pods are up to date and available"}},
		{"partition held", with(3, 1, heldByUser+", "+done), argocd.Health{Status: "Suspended", Message: "1 of 3 pods are updated, as the partition allows"}},
		{"paused", with(3, 1, paused), argocd.Health{Status: "Suspended", Message: "the update is paused; 2 pods are not updated"}},
		{"paused with a broken pod", with(3, 1, underWay), argocd.Health{Status: "Progressing", Message: "1 of 3 pods available"}},
		{"bad image", with(3, 1, badImage), argocd.Health{Status: "Progressing", Message: "2 of 3 pods available, 3 of 3 updated; ErrImagePull (web-x, container main)"}},
		{"past its deadline", with(3, 1, deadline+", "+tooLate), argocd.Health{Status: "Degraded", Message: "2 of 3 pods available, 3 of 3 updated; ErrImagePull (web-x, container main)"}},
		{"a spec that cannot be followed", with(3, 3, invalid), argocd.Health{Status: "Degraded", Message: "bad partition"}},
		{"a quota", with(1, 1, quota), argocd.Health{Status: "Progressing", Message: "exceeded quota"}},
		{"no replicas", with(0, 0, done), argocd.Health{Status: "Healthy", Message: "all pods are up to date and available"}},
		{"no replicas, and no counters", set("", "replicas: 0, conditions: ["+done+"]"), argocd.Health{Status: "Healthy", Message: "all pods are up to date and available"}},
		{
			"being deleted",
			"metadata: {name: web, generation: 3, deletionTimestamp: \"2026-01-02T12:00:00Z\"}\nspec: {}\nstatus: {observedGeneration: 3, conditions: [" + done + "]}\n",
			argocd.Health{Status: "Progressing", Message: "the object is terminating"},
		},
	}
}

func TestHealthOfSets(t *testing.T) {
	onDelete := []state{{
		"pods that wait to be deleted", set("updateStrategy: {type: OnDelete}", "replicas: 3, updatedReplicas: 0, conditions: ["+done+"]"),
		argocd.Health{Status: "Healthy", Message: "all pods are up to date and available"},
	}}
	for _, kind := range []string{"CloneSet", "StatefulSet"} {
		t.Run(kind, func(t *testing.T) {
			checkStates(t, kind, setStates(), "v1alpha1", "v1beta1")
			checkStates(t, kind, onDelete, "v1beta1")
		})
	}
}

// A DaemonSet counts nodes.
func TestHealthOfDaemonSets(t *testing.T) {
	set := func(strategy, status string) string {
		return "metadata: {name: agent, generation: 3}\nspec: {updateStrategy: {type: " + strategy + "}}\nstatus: {observedGeneration: 3, " + status + "}\n"
	}
	const (
		done    = `{type: Ready, status: "True", reason: Available, message: all pods are up to date and available}`
		rolling = `{type: Ready, status: "False", reason: RollingOut, message: 2 of 3 nodes have an available pod}`
	)
	checkStates(t, "DaemonSet", []state{
		{"done", set("RollingUpdate", "desiredNumberScheduled: 3, updatedNumberScheduled: 3, conditions: ["+done+"]"), argocd.Health{Status: "Healthy", Message: "all pods are up to date and available"}},
		{"rolling out", set("RollingUpdate", "desiredNumberScheduled: 3, updatedNumberScheduled: 2, conditions: ["+rolling+"]"), argocd.Health{Status: "Progressing", Message: "2 of 3 nodes have an available pod"}},
		{"at its partition", set("RollingUpdate", "desiredNumberScheduled: 3, updatedNumberScheduled: 1, conditions: ["+done+"]"), argocd.Health{Status: "Suspended", Message: "1 of 3 pods are updated, as the partition allows"}},
		{"OnDelete", set("OnDelete", "desiredNumberScheduled: 3, updatedNumberScheduled: 0, conditions: ["+done+"]"), argocd.Health{Status: "Healthy", Message: "all pods are up to date and available"}},
		{"no eligible node", set("RollingUpdate", "desiredNumberScheduled: 0, conditions: ["+done+"]"), argocd.Health{Status: "Healthy", Message: "all pods are up to date and available"}},
		{"not seen", "metadata: {name: agent, generation: 3}\nspec: {}\n", argocd.Health{Status: "Progressing", Message: "the operator has yet to observe the latest spec"}},
	}, "v1alpha1", "v1beta1")
}

func TestHealthOfNodeImages(t *testing.T) {
	image := func(status string) string {
		return "metadata: {name: node-1}\nspec: {images: {nginx: {tags: [{tag: \"1\"}, {tag: \"2\"}]}, redis: {tags: [{tag: \"7\"}]}}}\n" + status
	}
	checkStates(t, "NodeImage", []state{
		{"created", "metadata: {name: node-1}\nspec: {}\n", argocd.Health{Status: "Healthy", Message: "all images are on the node"}},
		{"new tags", image("status: {desired: 0}\n"), argocd.Health{Status: "Progressing", Message: "0 of 3 images are on the node"}},
		{"pulling", image("status: {desired: 3, succeeded: 1, pulling: 1, waiting: 1}\n"), argocd.Health{Status: "Progressing", Message: "1 of 3 images are on the node"}},
		{"pulling beside a failure", image("status: {desired: 3, succeeded: 1, pulling: 1, failed: 1}\n"), argocd.Health{Status: "Progressing", Message: "1 of 3 images are on the node"}},
		{"bad image", image("status: {desired: 3, succeeded: 2, failed: 1}\n"), argocd.Health{Status: "Degraded", Message: "1 of 3 images could not be pulled"}},
		{"ready", image("status: {desired: 3, succeeded: 3}\n"), argocd.Health{Status: "Healthy", Message: "all images are on the node"}},
		{"being deleted", "metadata: {name: node-1, deletionTimestamp: \"2026-01-02T12:00:00Z\"}\nspec: {}\n", argocd.Health{Status: "Progressing", Message: "the object is terminating"}},
	}, "v1alpha1", "v1beta1")
}

func TestHealthOfContainerRecreateRequests(t *testing.T) {
	request := func(status string) string {
		return "metadata: {name: again}\nspec: {podName: web, containers: [{name: main}, {name: log}]}\n" + status
	}
	states := func(phase, main, log string) string {
		return request("status: {phase: " + phase + ", containerRecreateStates: [{name: main, " + main + "}, {name: log, " + log + "}]}\n")
	}
	checkStates(t, "ContainerRecreateRequest", []state{
		{"created", request(""), argocd.Health{Status: "Progressing", Message: "waiting for the node agent"}},
		{"pending", request("status: {phase: Pending}\n"), argocd.Health{Status: "Progressing", Message: "Pending"}},
		{"recreating", states("Recreating", "phase: Succeeded", "phase: Recreating"), argocd.Health{Status: "Progressing", Message: "Recreating"}},
		{"done", states("Completed", "phase: Succeeded", "phase: Succeeded"), argocd.Health{Status: "Healthy", Message: "all containers were recreated"}},
		{"failed", states("Completed", "phase: Failed, message: no such container", "phase: Succeeded"), argocd.Health{Status: "Degraded", Message: "container main: no such container"}},
		{
			"past its deadline", request("status: {phase: Completed, message: recreating has exceeded the activeDeadlineSeconds, containerRecreateStates: [{name: main, phase: Pending}]}\n"),
			argocd.Health{Status: "Degraded", Message: "container main: recreating has exceeded the activeDeadlineSeconds"},
		},
		{"without its pod", request("status: {phase: Completed, message: pod has gone}\n"), argocd.Health{Status: "Degraded", Message: "pod has gone"}},
		{"being deleted", "metadata: {name: again, deletionTimestamp: \"2026-01-02T12:00:00Z\"}\nspec: {podName: web, containers: []}\n", argocd.Health{Status: "Progressing", Message: "the object is terminating"}},
	}, "v1alpha1", "v1beta1")
}

// The component adds the checks to an Argo CD that is installed with kustomize, and keeps the other keys of its
// ConfigMap.
func TestTheComponentAddsTheChecks(t *testing.T) {
	tree, err := render.NewTree(map[string]fs.FS{
		"kustomize": kustomize.Files,
		"mine": fstest.MapFS{
			"kustomization.yaml": {Data: []byte("resources: [argocd.yaml]\ncomponents: [../kustomize/argocd]\n")},
			"argocd.yaml":        {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: argocd-cm, namespace: argocd}\ndata: {url: https://argocd.example}\n")},
		},
	})
	require.NoError(t, err)
	var renderer render.Renderer
	manifests, err := renderer.Build(tree, "mine")
	require.NoError(t, err)
	var built corev1.ConfigMap
	require.NoError(t, yaml.UnmarshalStrict(manifests, &built))
	checks, err := argocd.Checks()
	require.NoError(t, err)
	require.Len(t, checks, 11)
	want := map[string]string{"url": "https://argocd.example"}
	for kind, script := range checks {
		want["resource.customizations.health."+kind.Group+"_"+kind.Kind] = script
	}
	assert.Equal(t, "argocd", built.Namespace)
	assert.Subset(t, built.Data, want)
	assert.Contains(t, built.Data, "resource.customizations.actions.apps.kruise.io_CloneSet")
}
