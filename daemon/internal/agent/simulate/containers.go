package simulate

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Container is a simulated container.
type Container struct {
	// ID is the runtime's own ID.
	ID        string
	Pod       *corev1.Pod // as it was when the container was created
	Spec      corev1.Container
	Env       []string // NAME=VALUE
	Restarts  int32
	State     runtimev1.ContainerState
	StartedAt time.Time
	EndedAt   time.Time
	// HideEnv leaves the environment out of the detailed status, as some runtimes do.
	HideEnv bool
	// Hash is the hash that the kubelet recorded.
	Hash uint64

	sandbox string
}

// Run starts a container and returns its ID as pods show it. The environment is the container's env, with
// fields resolved from the pod's metadata.
func (r *Runtime) Run(pod *corev1.Pod, name string, change ...func(*Container)) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &Container{
		ID:        r.newID("c"),
		Pod:       pod.DeepCopy(),
		State:     runtimev1.ContainerState_CONTAINER_RUNNING,
		StartedAt: time.Now(),
		sandbox:   r.sandboxOf(pod),
	}
	for _, before := range r.containers {
		if before.Pod.UID == pod.UID && before.Spec.Name == name {
			c.Restarts++
		}
	}
	for _, spec := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if spec.Name == name {
			c.Spec = spec
		}
	}
	for _, env := range c.Spec.Env {
		c.Env = append(c.Env, env.Name+"="+resolve(pod, env))
	}
	for _, f := range change {
		f(c)
	}
	r.containers = append(r.containers, c)
	r.notify()
	return r.Name + "://" + c.ID
}

func resolve(pod *corev1.Pod, env corev1.EnvVar) string {
	if env.ValueFrom == nil || env.ValueFrom.FieldRef == nil {
		return env.Value
	}
	path := env.ValueFrom.FieldRef.FieldPath
	for key, value := range pod.Labels {
		if path == "metadata.labels['"+key+"']" {
			return value
		}
	}
	for key, value := range pod.Annotations {
		if path == "metadata.annotations['"+key+"']" {
			return value
		}
	}
	return ""
}

// sandboxOf makes the pod's sandbox if there is none. The lock is held.
func (r *Runtime) sandboxOf(pod *corev1.Pod) string {
	for _, s := range r.sandboxes {
		if s.Metadata.Uid == string(pod.UID) {
			return s.Id
		}
	}
	s := &runtimev1.PodSandboxStatus{
		Id: r.newID("s"),
		Metadata: &runtimev1.PodSandboxMetadata{
			Name:      pod.Name,
			Namespace: pod.Namespace,
			Uid:       string(pod.UID),
		},
		State:     runtimev1.PodSandboxState_SANDBOX_READY,
		CreatedAt: time.Now().UnixNano(),
		Network:   &runtimev1.PodSandboxNetworkStatus{Ip: pod.Status.PodIP},
	}
	r.sandboxes = append(r.sandboxes, s)
	return s.Id
}

// Containers returns copies of the containers of a pod, the newest of each name only, and a channel that
// closes when something changes.
func (r *Runtime) Containers(pod *corev1.Pod) ([]Container, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	newest := map[string]Container{}
	for _, c := range r.containers {
		if c.Pod.UID == pod.UID {
			newest[c.Spec.Name] = *c
		}
	}
	var all []Container
	for _, c := range newest {
		all = append(all, c)
	}
	return all, r.changed
}

// Exit ends a container by itself.
func (r *Runtime) Exit(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.find(id); c != nil {
		c.State = runtimev1.ContainerState_CONTAINER_EXITED
		c.EndedAt = time.Now()
		r.notify()
	}
}

// find takes IDs with and without the runtime's name. The lock is held.
func (r *Runtime) find(id string) *Container {
	i := slices.IndexFunc(r.containers, func(c *Container) bool { return c.ID == id || r.Name+"://"+c.ID == id })
	if i < 0 {
		return nil
	}
	return r.containers[i]
}

func (c *Container) labels() map[string]string {
	return map[string]string{
		"io.kubernetes.pod.name":       c.Pod.Name,
		"io.kubernetes.pod.namespace":  c.Pod.Namespace,
		"io.kubernetes.pod.uid":        string(c.Pod.UID),
		"io.kubernetes.container.name": c.Spec.Name,
	}
}

// annotations returns the annotations that a kubelet sets.
func (c *Container) annotations() map[string]string {
	all := map[string]string{
		"io.kubernetes.container.hash":         strconv.FormatUint(c.Hash, 16),
		"io.kubernetes.container.restartCount": strconv.Itoa(int(c.Restarts)),
	}
	if c.Spec.Lifecycle != nil && c.Spec.Lifecycle.PreStop != nil {
		text, _ := json.Marshal(c.Spec.Lifecycle.PreStop)
		all["io.kubernetes.container.preStopHandler"] = string(text)
	}
	if len(c.Spec.Ports) > 0 {
		text, _ := json.Marshal(c.Spec.Ports)
		all["io.kubernetes.container.ports"] = string(text)
	}
	if grace := c.Pod.Spec.TerminationGracePeriodSeconds; grace != nil {
		all["io.kubernetes.pod.terminationGracePeriod"] = strconv.FormatInt(*grace, 10)
	}
	return all
}

// ListContainers implements the call.
func (r *Runtime) ListContainers(_ context.Context, request *runtimev1.ListContainersRequest) (*runtimev1.ListContainersResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := &runtimev1.ListContainersResponse{}
	for _, c := range r.containers {
		labels, matches := c.labels(), true
		for key, value := range request.GetFilter().GetLabelSelector() {
			matches = matches && labels[key] == value
		}
		if matches {
			out.Containers = append(out.Containers, &runtimev1.Container{
				Id:           c.ID,
				PodSandboxId: c.sandbox,
				Metadata:     &runtimev1.ContainerMetadata{Name: c.Spec.Name, Attempt: uint32(c.Restarts)},
				State:        c.State,
				CreatedAt:    c.StartedAt.UnixNano(),
				Labels:       labels,
				Annotations:  c.annotations(),
			})
		}
	}
	return out, nil
}

// ContainerStatus implements the call.
func (r *Runtime) ContainerStatus(_ context.Context, request *runtimev1.ContainerStatusRequest) (*runtimev1.ContainerStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.find(request.GetContainerId())
	if c == nil {
		return nil, status.Errorf(codes.NotFound, "container %s not found", request.GetContainerId())
	}
	out := &runtimev1.ContainerStatusResponse{Status: &runtimev1.ContainerStatus{
		Id:          c.ID,
		Metadata:    &runtimev1.ContainerMetadata{Name: c.Spec.Name, Attempt: uint32(c.Restarts)},
		State:       c.State,
		CreatedAt:   c.StartedAt.UnixNano(),
		StartedAt:   c.StartedAt.UnixNano(),
		Image:       &runtimev1.ImageSpec{Image: c.Spec.Image},
		ImageRef:    c.Spec.Image,
		Labels:      c.labels(),
		Annotations: c.annotations(),
	}}
	if !c.EndedAt.IsZero() {
		out.Status.FinishedAt = c.EndedAt.UnixNano()
	}
	if request.GetVerbose() && !c.HideEnv {
		text, err := json.Marshal(map[string]any{"runtimeSpec": map[string]any{"process": map[string]any{"env": c.Env}}})
		if err != nil {
			return nil, err
		}
		out.Info = map[string]string{"info": string(text)}
	}
	return out, nil
}

// PodSandboxStatus implements the call.
func (r *Runtime) PodSandboxStatus(_ context.Context, request *runtimev1.PodSandboxStatusRequest) (*runtimev1.PodSandboxStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sandboxes {
		if s.Id == request.GetPodSandboxId() {
			return &runtimev1.PodSandboxStatusResponse{Status: s}, nil
		}
	}
	return nil, status.Errorf(codes.NotFound, "sandbox %s not found", request.GetPodSandboxId())
}

// ExecSync implements the call: the command env prints the environment, false ends with code 1, and others print
// nothing.
func (r *Runtime) ExecSync(_ context.Context, request *runtimev1.ExecSyncRequest) (*runtimev1.ExecSyncResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.find(request.GetContainerId())
	if c == nil || c.State != runtimev1.ContainerState_CONTAINER_RUNNING {
		return nil, status.Errorf(codes.NotFound, "container %s is not running", request.GetContainerId())
	}
	out := &runtimev1.ExecSyncResponse{}
	if request.GetCmd()[0] == "false" {
		out.ExitCode = 1
		out.Stderr = []byte("a secret")
	}
	if slices.Equal(request.GetCmd(), []string{"env"}) {
		for _, line := range c.Env {
			out.Stdout = append(out.Stdout, line+"\n"...)
		}
	}
	return out, nil
}

// StopContainer implements the call: containers end at once.
func (r *Runtime) StopContainer(_ context.Context, request *runtimev1.StopContainerRequest) (*runtimev1.StopContainerResponse, error) {
	r.Exit(request.GetContainerId())
	return &runtimev1.StopContainerResponse{}, nil
}
