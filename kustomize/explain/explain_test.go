package explain

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/kustomize/test/scenes"
	"github.com/flotilla-project/flotilla/kustomize/workload"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// world is a CloneSet of five pods in the middle of an update, changed as a test wants it.
func world(changes ...func(w *World)) World {
	w := World{Now: noon, Set: &workload.Set{
		Kind: workload.Kinds()[0], Namespace: "shop", Name: "web", Generation: 2, Observed: 2,
		Wanted: 5, Pods: 5, Ready: 4, Available: 4, Updated: 2, Target: 5, UpdateRevision: "web-b", CurrentRevision: "web-a",
	}}
	for _, change := range changes {
		change(&w)
	}
	return w
}

func with(conditionType, status, reason, message string) func(w *World) {
	return func(w *World) {
		w.Set.Conditions = append(w.Set.Conditions, workload.Condition{Type: conditionType, Status: status, Reason: reason, Message: message})
	}
}

// having adds a pod.
func having(name string, changes ...func(p *corev1.Pod)) func(w *World) {
	return func(w *World) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
		pod.Spec.NodeName = "node-1"
		for _, change := range changes {
			change(pod)
		}
		w.Pods = append(w.Pods, pod)
	}
}

func condition(t corev1.PodConditionType, status corev1.ConditionStatus, reason, message string) func(p *corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: t, Status: status, Reason: reason, Message: message})
	}
}

func waits(reason, message string) func(p *corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "main", Image: "app:2", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
		}}
	}
}

func runs(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }

func in(state string) func(p *corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels["lifecycle.apps.kruise.io/state"] = state }
}

func ends(at time.Time, finalizers ...string) func(p *corev1.Pod) {
	return func(p *corev1.Pod) { p.DeletionTimestamp, p.Finalizers = &metav1.Time{Time: at}, finalizers }
}

func warning(kind, name, reason, message string) func(w *World) {
	return func(w *World) {
		w.Warnings = append(w.Warnings, corev1.Event{
			InvolvedObject: corev1.ObjectReference{Kind: kind, Name: name}, Reason: reason, Message: message,
		})
	}
}

func quota(w *World) {
	w.Quotas = []corev1.ResourceQuota{{ObjectMeta: metav1.ObjectMeta{Name: "small"}, Status: corev1.ResourceQuotaStatus{
		Hard: corev1.ResourceList{"cpu": resource.MustParse("4"), "pods": resource.MustParse("3")},
		Used: corev1.ResourceList{"cpu": resource.MustParse("1"), "pods": resource.MustParse("3")},
	}}}
}

func lostNode(w *World) {
	w.Nodes = map[string]*corev1.Node{"node-1": {ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Message: "Kubelet stopped posting node status"}},
	}}}
}

func TestEachCauseIsFound(t *testing.T) {
	hook := &workload.Hook{LabelsHandler: map[string]string{"drained": "no"}}
	cases := []struct {
		name  string
		world World
		why   []string
		help  string
	}{
		{"nothing", world(), nil, ""},
		{"a deleted set", world(func(w *World) { w.Set.Deleting = true }, having("web-1", waits("ErrImagePull", ""))), []string{"It is being deleted."}, ""},
		{
			"an operator that is behind", world(func(w *World) { w.Set.Observed = 1 }),
			[]string{"Its operator, cloneset-manager, has not processed the latest change."}, "flotilla status",
		},
		{
			"an operator that is not there",
			world(func(w *World) {
				w.Set.Observed, w.Manager = 1, &Manager{Namespace: "flotilla-system", Name: "cloneset-manager"}
			}),
			[]string{"Its operator is down: Deployment cloneset-manager in namespace flotilla-system has no ready pod."},
			"kubectl -n flotilla-system describe deployment cloneset-manager",
		},
		{
			"an operator that is not installed",
			world(func(w *World) {
				w.Set.Observed, w.Manager = 1, &Manager{Namespace: "flotilla-system", Name: "cloneset-manager", Absent: true}
			}),
			[]string{"Its operator, cloneset-manager, has not processed the latest change."},
			"Deployment cloneset-manager was not found in namespace flotilla-system. Unless another operator manages the kind: flotilla install cloneset",
		},
		{
			"a partition, a pause or OnDelete of a set without old pods",
			world(func(w *World) { w.Set.Pods, w.Set.Target, w.Set.Paused, w.Set.OnDelete = 2, 2, true, true }), nil, "",
		},
		{
			"a pause", world(func(w *World) { w.Set.Paused = true }),
			[]string{"Its update is paused, and 3 pods stay at an older revision."}, "flotilla rollout resume cloneset/web",
		},
		{
			"a partition", world(func(w *World) { w.Set.Target = 2 }),
			[]string{"Its partition keeps 3 of 5 pods at an older revision."}, "lower rollingUpdate.partition",
		},
		{
			"a selector of nodes", world(func(w *World) { w.Set.Target = workload.Unknown }),
			[]string{"Its update is limited to the nodes that match rollingUpdate.selector."}, "",
		},
		{
			"OnDelete", world(func(w *World) { w.Set.OnDelete = true; w.Set.Updated = 4 }),
			[]string{"Its strategy is OnDelete: 1 pod stays at an older revision until you delete them."}, "Delete these pods",
		},
		{
			"a quota", world(quota, with("FailedScale", "True", "Error", `pods "web-1" is forbidden: exceeded quota: small, requested: pods=1`)),
			[]string{
				"ResourceQuota small refuses pods: 3 of 3 pods used, 1 of 4 cpu used.",
				`Its operator reports Error: pods "web-1" is forbidden: exceeded quota: small, requested: pods=1.`,
			}, "Raise the quota",
		},
		{"a quota that refuses nothing", world(quota), nil, ""},
		{
			"a budget that is used up",
			world(with("Ready", "False", "Refused", "the write was refused"), func(w *World) {
				w.Budgets = []Budget{{"PodUnavailableBudget", "web", 0}, {"PodUnavailableBudget", "roomy", 2}, {"PodDisruptionBudget", "other", 0}}
			}),
			[]string{"PodUnavailableBudget web allows 0 more pods to become unavailable now."}, "when pods become ready",
		},
		{
			"a budget that the operator names",
			world(with("Ready", "False", "Blocked", "PodDisruptionBudget floor needs 4 pods"), func(w *World) {
				w.Budgets = []Budget{{"PodDisruptionBudget", "floor", 1}}
			}),
			[]string{"PodDisruptionBudget floor allows 1 more pod to become unavailable now."}, "",
		},
		{
			"pods without a node",
			world(
				having("web-10", condition(corev1.PodScheduled, corev1.ConditionFalse, "Unschedulable", "0/3 nodes are available: 3 Insufficient cpu")),
				having("web-2", condition(corev1.PodScheduled, corev1.ConditionFalse, "Unschedulable", "0/3 nodes are available: 3 Insufficient cpu")),
			),
			[]string{"2 pods (web-2, web-10): no node fits. The scheduler reports: 0/3 nodes are available: 3 Insufficient cpu."}, "Free resources",
		},
		{
			"an image", world(having("web-1", waits("ImagePullBackOff", "")), having("web-2", waits("ErrImagePull", ""))),
			[]string{"2 pods (web-1, web-2): the image app:2 of container main cannot be pulled."}, "flotilla rollout undo cloneset/web",
		},
		{
			"an image that is not pulled", world(having("web-1", waits("InvalidImageName", ""))),
			[]string{"Pod web-1: the image app:2 of container main is not pulled (InvalidImageName)."}, "Correct the image",
		},
		{
			"many pods that crash",
			world(having("web-1", waits("CrashLoopBackOff", "")), having("web-2", waits("CrashLoopBackOff", "")),
				having("web-3", waits("CrashLoopBackOff", "")), having("web-4", waits("CrashLoopBackOff", ""))),
			[]string{"4 pods (web-1, web-2, web-3 and others): container main exits repeatedly."}, "kubectl logs --previous -c main POD",
		},
		{
			"a missing ConfigMap", world(having("web-1", waits("CreateContainerConfigError", `configmap "a" not found`))),
			[]string{`Pod web-1: container main cannot be configured: configmap "a" not found.`}, "Create the missing ConfigMap",
		},
		{
			"another word of the kubelet", world(having("web-1", waits("RunContainerError", ""))),
			[]string{"Pod web-1: the kubelet, for container main, reports RunContainerError: no message."}, "kubectl describe pod",
		},
		{"a pod that starts", world(having("web-1", waits("ContainerCreating", ""))), nil, ""},
		{
			"a hook before an update",
			world(having("web-1", in("PreparingUpdate")), func(w *World) { w.Set.Lifecycle.InPlaceUpdate = hook }),
			[]string{"Pod web-1: hook inPlaceUpdate waits until label drained=no is removed."}, "answers the hook",
		},
		{
			"a hook after an update",
			world(having("web-1", in("Updated")), func(w *World) { w.Set.Lifecycle.InPlaceUpdate = hook }),
			[]string{"Pod web-1: hook inPlaceUpdate waits until label drained=no is set again."}, "",
		},
		{
			"a hook before deletion",
			world(having("web-1", in("PreparingDelete")), func(w *World) { w.Set.Lifecycle.PreDelete = &workload.Hook{FinalizersHandler: []string{"a/b"}} }),
			[]string{"Pod web-1: hook preDelete waits until finalizer a/b is removed."}, "",
		},
		{
			"a resize that the node puts off",
			world(having("web-1", condition("PodResizePending", corev1.ConditionTrue, "Deferred", "no cpu"))),
			[]string{"Pod web-1: node node-1 has not granted its new resources (Deferred): no cpu."}, "Request less",
		},
		{
			"a resize that has failed",
			world(having("web-1", condition("PodResizeInProgress", corev1.ConditionTrue, "Error", "it uses more"))),
			[]string{"Pod web-1: node node-1 has not granted its new resources (Error): it uses more."}, "Request less",
		},
		{
			"a resize that goes on",
			world(having("web-1", condition("PodResizeInProgress", corev1.ConditionTrue, "", ""))),
			nil, "",
		},
		{
			"a pod that waits for a finalizer", world(having("web-1", ends(noon, "a/b"))),
			[]string{"Pod web-1: it is being deleted and waits for finalizer a/b."}, "removes the finalizer",
		},
		{
			"a pod that should have ended", world(having("web-1", ends(noon.Add(-time.Minute)))),
			[]string{"Pod web-1: its grace period is over, and it still exists on node node-1."}, "--force",
		},
		{"a pod that ends", world(having("web-1", ends(noon.Add(-time.Second)))), nil, ""},
		{
			"a node that is lost", world(lostNode, having("web-1", runs)),
			[]string{"Pod web-1: node node-1 is not Ready: Kubelet stopped posting node status."}, "kubectl describe node node-1",
		},
		{
			"a probe that fails", world(having("web-1", runs), warning("Pod", "web-1", "Unhealthy", "Readiness probe failed: 503")),
			[]string{"Pod web-1: a probe fails: Readiness probe failed: 503."}, "kubectl logs",
		},
		{"a pod that is not ready", world(having("web-1", runs)), []string{"Pod web-1: it runs, but is not ready yet."}, "readiness probe"},
		{
			"a readiness gate",
			world(having("web-1", runs, condition(corev1.ContainersReady, corev1.ConditionTrue, "", ""), func(p *corev1.Pod) {
				p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.io/lb"}}
			})),
			[]string{"Pod web-1: readiness gate example.io/lb is not True."}, "sets this condition",
		},
		{
			"a set that is stalled", world(with("Stalled", "True", "InvalidSpec", "spec.x: wrong")),
			[]string{"Its operator reports InvalidSpec: spec.x: wrong."}, "Correct the field",
		},
		{
			"a node agent that is missing", world(with("Ready", "False", "NodeAgentMissing", "pod web-1 waits")),
			[]string{"Its operator reports NodeAgentMissing: pod web-1 waits."}, "flotilla install daemon",
		},
		{
			"what the operator waits for is told only where nothing else is known",
			world(with("Ready", "False", "MaxUnavailable", "pod web-1 waits"), having("web-2", runs)),
			[]string{"Pod web-2: it runs, but is not ready yet."}, "",
		},
		{
			"events", world(warning("Pod", "web-1", "FailedMount", "no volume"), warning("Pod", "web-2", "FailedMount", "no volume"), warning("CloneSet", "web", "Odd", "x")),
			[]string{"Event FailedMount of pod/web-1: no volume.", "Event Odd of cloneset/web: x."}, "",
		},
		{
			"events of a set that is complete",
			world(func(w *World) { w.Set.Updated, w.Set.Available = 5, 5 }, warning("Pod", "web-1", "FailedMount", "no volume")), nil, "",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var why []string
			e := Explain(c.world)
			for _, f := range e.Findings {
				why = append(why, f.Why)
			}
			assert.Equal(t, c.why, why)
			if c.help != "" {
				require.NotEmpty(t, e.Findings)
				assert.Contains(t, e.Findings[0].Help, c.help)
			}
		})
	}
}

func TestFindingsNameTheirObjects(t *testing.T) {
	e := Explain(world(having("web-1", runs), having("web-2", runs)))
	require.Len(t, e.Findings, 1)
	assert.Equal(t, []string{"pod/web-1", "pod/web-2"}, e.Findings[0].Objects)
}

func TestExplanationsAreTold(t *testing.T) {
	done := world(func(w *World) { w.Set.Updated, w.Set.Available = 5, 5 })
	for _, c := range []struct {
		world World
		want  string
	}{
		{done, "CloneSet web in namespace shop is Complete: all 5 pods are updated and available.\n\nNo problem found.\n"},
		{
			world(), "CloneSet web in namespace shop is Progressing: 2 of 5 pods updated, 4 of 5 available.\n\n" +
				"No problem found; the rollout is still in progress.\n",
		},
		{
			world(having("web-1", runs), func(w *World) { w.Unread = []string{"nodes: forbidden"} }),
			"CloneSet web in namespace shop is Progressing: 2 of 5 pods updated, 4 of 5 available.\n\n" +
				"- Pod web-1: it runs, but is not ready yet.\n  If this lasts, check its readiness probe: kubectl describe pod\n\nNot checked: nodes: forbidden\n",
		},
	} {
		var out bytes.Buffer
		require.NoError(t, write(&out, Explain(c.world), ""))
		assert.Equal(t, c.want, out.String())
	}
	e := Explain(world())
	e.ToGo = "about 4 minutes to go"
	var out bytes.Buffer
	require.NoError(t, write(&out, e, ""))
	assert.Contains(t, out.String(), "CloneSet web in namespace shop is Progressing: 2 of 5 pods updated, 4 of 5 available, about 4 minutes to go.\n")
}

// A forecast that takes too long costs nothing else of the explanation.
func TestALargeRolloutIsExplainedWithoutItsTime(t *testing.T) {
	const start = 10 * time.Second
	scene := scenes.Underway(t, scenes.Web, scenes.NewImage, 40*time.Second, start, start)
	assert.Equal(t, "about 10 seconds to go", toGo(t.Context(), scene))
	ended, end := context.WithTimeout(t.Context(), 0)
	defer end()
	assert.Empty(t, toGo(ended, scene))
}
