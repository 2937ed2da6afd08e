package inplace

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/inplace/completion"
	"github.com/flotilla-project/flotilla/core/pods/inplace/record"
	"github.com/flotilla-project/flotilla/core/pods/inplace/running"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// noon is when the stories of the tests begin.
var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

var allGates = Options{EnvFromMetadata: true, Resize: true, CompareClaims: true}

func at(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(d)) }

// templateOf has containers of the given names with image <name>:v1.
func templateOf(names ...string) *corev1.PodTemplateSpec {
	t := &corev1.PodTemplateSpec{}
	for _, name := range names {
		t.Spec.Containers = append(t.Spec.Containers, corev1.Container{Name: name, Image: name + ":v1"})
	}
	return t
}

// withInits puts init containers before the containers of the template, with image <name>:v1: setup, which ends, and
// native sidecars of the given names.
func withInits(t *corev1.PodTemplateSpec, sidecars ...string) *corev1.PodTemplateSpec {
	t.Spec.InitContainers = []corev1.Container{{Name: "setup", Image: "setup:v1"}}
	for _, name := range sidecars {
		always := corev1.ContainerRestartPolicyAlways
		t.Spec.InitContainers = append(t.Spec.InitContainers, corev1.Container{Name: name, Image: name + ":v1", RestartPolicy: &always})
	}
	return t
}

// variant is a changed copy of the template.
func variant(t *corev1.PodTemplateSpec, change func(*corev1.PodTemplateSpec)) *corev1.PodTemplateSpec {
	t = t.DeepCopy()
	change(t)
	return t
}

func revisionOf(name string, t *corev1.PodTemplateSpec) *Revision {
	return &Revision{Name: name, Template: t}
}

// envFrom is a variable that reads the annotation.
func envFrom(name, annotation string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + annotation + "']"},
	}}
}

// barrier is the variable that gives a container of a pod its launch priority.
func barrier(key string) corev1.EnvVar {
	return corev1.EnvVar{Name: contract.ContainerBarrierEnv, ValueFrom: &corev1.EnvVarSource{
		ConfigMapKeyRef: &corev1.ConfigMapKeySelector{Key: key},
	}}
}

func quantities(cpu, memory string) corev1.ResourceList {
	list := corev1.ResourceList{}
	if cpu != "" {
		list[corev1.ResourceCPU] = resource.MustParse(cpu)
	}
	if memory != "" {
		list[corev1.ResourceMemory] = resource.MustParse(memory)
	}
	return list
}

// resources are those of the first container.
func resources(limits, requests corev1.ResourceList) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: limits, Requests: requests}
	}
}

// runningPod is a ready pod of the template, as its kubelet reports it: container IDs <name>-0, one
// image ID for each image.
func runningPod(t *corev1.PodTemplateSpec, revision string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *t.ObjectMeta.DeepCopy(), Spec: *t.Spec.DeepCopy()}
	pod.Name, pod.Generation = "pod", 1
	metav1.SetMetaDataLabel(&pod.ObjectMeta, contract.RevisionLabel, revision)
	pod.Spec.NodeName = "node"
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: contract.InPlaceUpdateReady}}
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].Resources = withDefaults(pod.Spec.Containers[i].Resources)
	}
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, ObservedGeneration: 1,
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue},
			{Type: corev1.ContainersReady, Status: corev1.ConditionTrue},
			{Type: contract.InPlaceUpdateReady, Status: corev1.ConditionTrue},
		},
	}
	pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses = statusesOf(pod.Spec.Containers), statusesOf(pod.Spec.InitContainers)
	for i := range pod.Spec.InitContainers {
		if !podspec.IsSidecar(&pod.Spec.InitContainers[i]) {
			pod.Status.InitContainerStatuses[i].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
		}
	}
	return pod
}

func statusesOf(containers []corev1.Container) []corev1.ContainerStatus {
	var list []corev1.ContainerStatus
	for i := range containers {
		c := &containers[i]
		list = append(list, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: imageIDOf(c.Image), ContainerID: c.Name + "-0", Ready: true,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, Resources: c.Resources.DeepCopy(),
		})
	}
	return list
}

func withDefaults(r corev1.ResourceRequirements) corev1.ResourceRequirements {
	for name, q := range r.Limits {
		if _, ok := r.Requests[name]; !ok {
			if r.Requests == nil {
				r.Requests = corev1.ResourceList{}
			}
			r.Requests[name] = q
		}
	}
	return r
}

func imageIDOf(image string) string { return "registry/" + image + "@sha256:" + image }

// restarted reports that the kubelet runs the container anew from its spec.
func restarted(pod *corev1.Pod, container, id string) {
	status, image := running.Status(pod, container), running.Container(pod, container).Image
	status.ContainerID, status.Image, status.ImageID, status.Ready = id, image, imageIDOf(image), true
	status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	pod.Status.ObservedGeneration = pod.Generation
}

// written is the pod after the change's patches, by the rules of the API server for its subresources.
func written(t testing.TB, c *action.PodChange) *corev1.Pod {
	t.Helper()
	return applied(t, c.Pod.DeepCopy(), c.Patches())
}

func applied(t testing.TB, pod *corev1.Pod, patches []action.Patch) *corev1.Pod {
	t.Helper()
	for _, patch := range patches {
		body, err := json.Marshal(patch.Body)
		require.NoError(t, err)
		before, err := json.Marshal(pod)
		require.NoError(t, err)
		after, err := strategicpatch.StrategicMergePatch(before, body, corev1.Pod{})
		require.NoError(t, err)
		next := &corev1.Pod{}
		require.NoError(t, json.Unmarshal(after, next))
		switch patch.Subresource {
		case "status":
			require.True(t, equality.Semantic.DeepEqual(pod.Spec, next.Spec), "pods/status cannot change the spec")
		case "resize":
			require.True(t, equality.Semantic.DeepEqual(pod.ObjectMeta, next.ObjectMeta), "pods/resize cannot change metadata")
			for i, c := range podspec.LongRunning(&pod.Spec) {
				require.Equal(t, c.Image, podspec.LongRunning(&next.Spec)[i].Image, "pods/resize cannot change images")
			}
		default:
			require.True(t, equality.Semantic.DeepEqual(pod.Status, next.Status), "a pod patch cannot change the status")
			for i, c := range podspec.LongRunning(&pod.Spec) {
				require.True(t, equality.Semantic.DeepEqual(c.Resources, podspec.LongRunning(&next.Spec)[i].Resources))
			}
		}
		if !equality.Semantic.DeepEqual(pod.Spec, next.Spec) {
			next.Generation++
		}
		pod = next
	}
	return pod
}

// subresources are the writes of the change in short; the pod itself is "pod".
func subresources(c *action.PodChange) []string {
	var list []string
	for _, p := range c.Patches() {
		if p.Subresource == "" {
			p.Subresource = "pod"
		}
		list = append(list, p.Subresource)
	}
	return list
}

// begin starts the update from one template to another on the pod. Where the pod serves it returns the change that comes
// after the kubelet's answer: of the first batch, or of the plan when the grace period begins.
func begin(t testing.TB, pod *corev1.Pod, from, to *Revision, grace int32, now metav1.Time) *action.PodChange {
	t.Helper()
	u, err := Diff(from, to, allGates)
	require.NoError(t, err)
	c := action.NewPodChange(pod, now)
	u.Begin(c, grace)
	c.SetLabel(contract.RevisionLabel, to.Name)
	if c.Annotation(contract.InPlaceUpdateGraceAnnotation) != "" {
		c = action.NewPodChange(answered(written(t, c), now), now)
		Refresh(c, allGates)
	}
	return c
}

// answered is the pod once the kubelet has reported whether it is ready, by its readiness gate alone.
func answered(pod *corev1.Pod, now metav1.Time) *corev1.Pod {
	pod = pod.DeepCopy()
	if ready, gate := podstate.Condition(pod, corev1.PodReady), gateOf(pod); ready != nil && gate != "" && ready.Status != gate {
		ready.Status, ready.LastTransitionTime = gate, now
	}
	return pod
}

// refresh brings the pod's update on and returns the pod as written.
func refresh(t testing.TB, pod *corev1.Pod, now metav1.Time) (*corev1.Pod, completion.Progress, []string) {
	t.Helper()
	c := action.NewPodChange(pod, now)
	p := Refresh(c, allGates)
	return answered(written(t, c), now), p, subresources(c)
}

func stateOf(t testing.TB, pod *corev1.Pod) *record.State {
	t.Helper()
	s, err := record.ReadState(action.NewPodChange(pod, metav1.Time{}))
	require.NoError(t, err)
	require.NotNil(t, s)
	return s
}

func gateOf(pod *corev1.Pod) corev1.ConditionStatus {
	for _, c := range pod.Status.Conditions {
		if c.Type == contract.InPlaceUpdateReady {
			return c.Status
		}
	}
	return ""
}
