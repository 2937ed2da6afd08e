package daemon

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	clonesets "github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/story"
)

const app = "flotilla/demo-app:"

// newContainer returns a container with the demo application at v1. The containers of a pod need different ports.
func newContainer(name string, port int, args ...string) corev1.Container {
	return corev1.Container{
		Name: name, Image: app + "v1", Args: append([]string{"-address", fmt.Sprintf(":%d", port)}, args...),
		ReadinessProbe: &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt(port)}},
			PeriodSeconds: 1,
		},
	}
}

// givenPod creates pod "web" of the containers and waits until it is ready.
func givenPod(t *testing.T, containers ...corev1.Container) *corev1.Pod {
	t.Helper()
	o := newPod(world.Namespace(t), containers...)
	require.NoError(t, world.Client.Create(t.Context(), o))
	isReady(t, o)
	return o
}

func newPod(namespace string, containers ...corev1.Container) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace},
		Spec:       corev1.PodSpec{Containers: containers, TerminationGracePeriodSeconds: new(int64(5))},
	}
}

func isReady(t *testing.T, o *corev1.Pod) {
	t.Helper()
	story.Reaches(t, world, o, "ready", func(o *corev1.Pod) error {
		return story.Want(story.IsReady(o), "status is %+v", o.Status.ContainerStatuses)
	})
}

// newRequest returns a request to recreate containers of the pod.
func newRequest(name string, o *corev1.Pod, containers ...string) *v1beta1.ContainerRecreateRequest {
	r := &v1beta1.ContainerRecreateRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: o.Namespace},
		Spec:       v1beta1.ContainerRecreateRequestSpec{PodName: o.Name, Strategy: &v1beta1.RecreateStrategy{}},
	}
	for _, c := range containers {
		r.Spec.Containers = append(r.Spec.Containers, v1beta1.ContainerToRecreate{Name: c})
	}
	return r
}

// completes waits until the request has ended.
func completes(t *testing.T, r *v1beta1.ContainerRecreateRequest) {
	t.Helper()
	story.Reaches(t, world, r, "completed", func(r *v1beta1.ContainerRecreateRequest) error {
		return story.Want(r.Status.Phase == v1beta1.RecreateCompleted, "status is %+v", r.Status)
	})
}

// phases returns the phases of the request's containers, in order.
func phases(r *v1beta1.ContainerRecreateRequest) []v1beta1.RecreatePhase {
	var all []v1beta1.RecreatePhase
	for _, s := range r.Status.ContainerRecreateStates {
		all = append(all, s.Phase)
	}
	return all
}

// container returns the status of the pod's container of that name.
func container(t *testing.T, o *corev1.Pod, name string) corev1.ContainerStatus {
	t.Helper()
	for _, s := range o.Status.ContainerStatuses {
		if s.Name == name {
			return s
		}
	}
	require.Failf(t, "no such container", "pod %s has no container %s", o.Name, name)
	return corev1.ContainerStatus{}
}

// restarts returns the restart counts of the containers, by name.
func restarts(o *corev1.Pod) map[string]int32 {
	counts := map[string]int32{}
	for _, s := range o.Status.ContainerStatuses {
		counts[s.Name] = s.RestartCount
	}
	return counts
}

// contextOf returns a context that a test can also use in its cleanup.
func contextOf(t *testing.T) context.Context {
	t.Helper()
	return context.WithoutCancel(t.Context())
}

// newSet returns a CloneSet "web" with one pod of the containers and policy InPlaceOnly.
func newSet(namespace string, annotations map[string]string, containers ...corev1.Container) *clonesets.CloneSet {
	labels := map[string]string{"app": "web"}
	return &clonesets.CloneSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace},
		Spec: clonesets.CloneSetSpec{
			Replicas: new(int32(1)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: annotations},
				Spec:       corev1.PodSpec{Containers: containers, TerminationGracePeriodSeconds: new(int64(5))},
			},
			UpdateStrategy: clonesets.CloneSetUpdateStrategy{
				Type: clonesets.RollingUpdate,
				RollingUpdate: &clonesets.RollingUpdateCloneSetStrategy{
					PodUpdatePolicy: clonesets.InPlaceOnly, MaxUnavailable: new(intstr.FromInt32(1)),
				},
			},
		},
	}
}

// settles waits until the set's status is for its current spec and its pod meets it, and returns the pod.
func settles(t *testing.T, set *clonesets.CloneSet) *corev1.Pod {
	t.Helper()
	story.Settles(t, world, set, func(set *clonesets.CloneSet) error {
		return story.Want(set.Status.AvailableReplicas == *set.Spec.Replicas, "status is %+v", set.Status)
	})
	pods := story.Active(world.Pods(t, set.Namespace))
	require.Len(t, pods, 1)
	return &pods[0]
}

// fromAnnotation returns an environment variable that reads an annotation of the pod.
func fromAnnotation(name, key string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + key + "']"},
	}}
}
