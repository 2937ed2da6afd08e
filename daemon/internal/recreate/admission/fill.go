package admission

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/pods/podstate"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

// Target is the pod of a request and its node.
type Target struct {
	// Pod is the pod of the request's name, nil when there is none.
	Pod *corev1.Pod
	// NodeLabels are the labels of the pod's node; NodeFound reports whether it exists.
	NodeLabels map[string]string
	NodeFound  bool
	// Open is how many requests for the pod are not over, as far as is known.
	Open int
}

func specPath() *field.Path       { return field.NewPath("spec") }
func containersPath() *field.Path { return specPath().Child("containers") }

// Fill writes into a new request which pod, node and containers it is about, and how its containers are to be stopped.
// With errors it is partly filled.
func Fill(r *v1beta1.ContainerRecreateRequest, t Target) field.ErrorList {
	if err := usable(r, t); err != nil {
		return field.ErrorList{err}
	}
	fillStrategy(r, t.Pod)
	metav1.SetMetaDataLabel(&r.ObjectMeta, v1beta1.PodUIDLabel, string(t.Pod.UID))
	metav1.SetMetaDataLabel(&r.ObjectMeta, v1beta1.NodeNameLabel, t.Pod.Spec.NodeName)
	metav1.SetMetaDataLabel(&r.ObjectMeta, v1beta1.ActiveLabel, "true")
	if t.NodeLabels[v1beta1.NodeTypeLabel] == v1beta1.VirtualKubelet {
		metav1.SetMetaDataLabel(&r.ObjectMeta, v1beta1.NodeTypeLabel, v1beta1.VirtualKubelet)
	}
	var errs field.ErrorList
	for i := range r.Spec.Containers {
		if err := fillContainer(&r.Spec.Containers[i], t.Pod, containersPath().Index(i).Child("name")); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// usable returns the reason against recreating any container of the pod.
func usable(r *v1beta1.ContainerRecreateRequest, t Target) *field.Error {
	name := r.Spec.PodName
	invalid := func(format string, args ...any) *field.Error {
		return field.Invalid(specPath().Child("podName"), name, fmt.Sprintf(format, args...))
	}
	switch {
	case t.Pod == nil:
		return invalid("pod %q not found in namespace %q", name, r.Namespace)
	case t.Pod.Spec.NodeName == "":
		return invalid("pod %q is not scheduled yet", name)
	case !t.NodeFound:
		return invalid("the node of pod %q was not found", name)
	case t.Pod.Annotations[corev1.MirrorPodAnnotationKey] != "":
		return invalid("pod %q is a static pod: its UID on the node differs, so the node agent cannot find its containers", name)
	case t.Pod.DeletionTimestamp != nil:
		return invalid("pod %q is not active (it is being deleted)", name)
	case t.Open >= v1beta1.MaxRequestsPerPod:
		return field.Forbidden(specPath().Child("podName"), fmt.Sprintf("pod %q has %d ContainerRecreateRequests that are not completed, of at most %d: "+
			"wait until some complete, or delete those that are not needed; kubectl get crr -l %s=%s lists them",
			name, t.Open, v1beta1.MaxRequestsPerPod, v1beta1.PodUIDLabel, t.Pod.UID))
	case podstate.Condition(t.Pod, contract.SidecarTerminated) != nil: // its sidecars run though the pod is over
		return nil
	case t.Pod.Status.Phase == corev1.PodSucceeded, t.Pod.Status.Phase == corev1.PodFailed:
		return invalid("pod %q is not active (phase %s)", name, t.Pod.Status.Phase)
	}
	return nil
}

func fillStrategy(r *v1beta1.ContainerRecreateRequest, pod *corev1.Pod) {
	if r.Spec.Strategy == nil {
		r.Spec.Strategy = &v1beta1.RecreateStrategy{}
	}
	if r.Spec.Strategy.FailurePolicy == "" {
		r.Spec.Strategy.FailurePolicy = v1beta1.FailurePolicyFail
	}
	if r.Spec.Strategy.TerminationGracePeriodSeconds == nil && pod.Spec.TerminationGracePeriodSeconds != nil {
		r.Spec.Strategy.TerminationGracePeriodSeconds = new(*pod.Spec.TerminationGracePeriodSeconds)
	}
}

func fillContainer(c *v1beta1.ContainerToRecreate, pod *corev1.Pod, path *field.Path) *field.Error {
	container, status, reason := find(pod, c.Name)
	if reason != "" {
		return field.Invalid(path, c.Name, reason)
	}
	if status == nil || status.ContainerID == "" {
		return field.Invalid(path, c.Name, fmt.Sprintf("container %q has not been created yet, nothing to recreate", c.Name))
	}
	c.StatusContext = &v1beta1.ContainerStatusContext{ContainerID: status.ContainerID, RestartCount: status.RestartCount}
	if container.Lifecycle == nil || container.Lifecycle.PreStop == nil {
		return nil
	}
	hook := container.Lifecycle.PreStop.DeepCopy()
	c.PreStop = &v1beta1.PreStopHandler{
		Exec:      hook.Exec,
		HTTPGet:   hook.HTTPGet,
		TCPSocket: hook.TCPSocket,
		Sleep:     hook.Sleep,
	}
	if hook.HTTPGet != nil {
		for i := range container.Ports {
			c.Ports = append(c.Ports, *container.Ports[i].DeepCopy())
		}
	}
	return nil
}

// find returns a container that restarts, with its status, or the reason why there is none of the name. The reason
// names no other container: all clients that can reach the webhook can read it.
func find(pod *corev1.Pod, name string) (*corev1.Container, *corev1.ContainerStatus, string) {
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; c.Name == name {
			return c, statusOf(pod.Status.ContainerStatuses, name), ""
		}
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		switch {
		case c.Name == name && podspec.IsSidecar(c):
			return c, statusOf(pod.Status.InitContainerStatuses, name), ""
		case c.Name == name:
			return nil, nil, fmt.Sprintf("container %q is an init container, which runs once", name)
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if pod.Spec.EphemeralContainers[i].Name == name {
			return nil, nil, fmt.Sprintf("container %q is an ephemeral container, which runs once", name)
		}
	}
	return nil, nil, fmt.Sprintf("pod has no container %q", name)
}

func statusOf(list []corev1.ContainerStatus, name string) *corev1.ContainerStatus {
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}
