package cri

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	criapi "k8s.io/cri-api/pkg/apis"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
	criclient "k8s.io/cri-client/pkg"
	utilexec "k8s.io/utils/exec"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/metrics"
)

const (
	// callTimeout bounds every call but pulls; stops and commands get it on top of their own time.
	callTimeout = 5 * time.Second
	// envTimeout bounds the command that prints an environment.
	envTimeout = 3 * time.Second
)

// Runtime is one container runtime of the node. Its methods may be called at any time: while the runtime is
// unavailable they return errors, and once it is available again they succeed.
type Runtime struct {
	endpoint    string
	name        atomic.Pointer[string] // another runtime may take over the socket
	runtime     criapi.RuntimeService
	images      criapi.ImageManagerService
	metrics     *metrics.Metrics
	unavailable func() // called when a call finds the runtime unavailable
}

// connect makes the connections to a socket and probes it.
func connect(ctx context.Context, path string, m *metrics.Metrics, unavailable func()) (*Runtime, error) {
	ctx, r := withoutLog(ctx), &Runtime{endpoint: "unix://" + path, metrics: m, unavailable: unavailable}
	var err error
	if r.images, err = criclient.NewRemoteImageService(ctx, r.endpoint, callTimeout, nil, false); err != nil {
		return nil, err
	}
	if r.runtime, err = criclient.NewRemoteRuntimeService(ctx, r.endpoint, callTimeout, nil, false); err != nil {
		return nil, errors.Join(err, r.images.Close(ctx))
	}
	if err := r.probe(ctx); err != nil {
		return nil, errors.Join(err, r.close(ctx))
	}
	if _, err := r.Images(ctx); err != nil {
		return nil, errors.Join(err, r.close(ctx))
	}
	return r, nil
}

// withoutLog keeps cri-client from logging the errors that it returns.
func withoutLog(ctx context.Context) context.Context { return logr.NewContext(ctx, logr.Discard()) }

// probe requests the version, which has the runtime's name.
func (r *Runtime) probe(ctx context.Context) error {
	version, err := r.runtime.Version(withoutLog(ctx), "v1")
	if err != nil {
		return r.countError("Version", err)
	}
	name := version.GetRuntimeName()
	r.name.Store(&name)
	return nil
}

func (r *Runtime) close(ctx context.Context) error {
	return errors.Join(r.runtime.Close(withoutLog(ctx)), r.images.Close(withoutLog(ctx)))
}

// callFailed counts the error, and requests a probe if the runtime seems to be unavailable.
func (r *Runtime) callFailed(call string, err error) error {
	if IsUnavailable(err) {
		r.unavailable()
	}
	return r.countError(call, err)
}

// countError counts a failed call and wraps its error.
func (r *Runtime) countError(call string, err error) error {
	r.metrics.CRIErrors.WithLabelValues(call).Inc()
	return fmt.Errorf("%s: %w", call, err)
}

// Name returns what the runtime calls itself, such as containerd. IDs of containers begin with it.
func (r *Runtime) Name() string { return *r.name.Load() }

// Containers lists the containers of a pod, also those that have ended. An empty namespace and name mean
// all pods.
func (r *Runtime) Containers(ctx context.Context, namespace, name string) ([]Container, error) {
	filter := &runtimev1.ContainerFilter{}
	if name != "" {
		filter.LabelSelector = map[string]string{podNamespaceLabel: namespace, podNameLabel: name}
	}
	list, err := r.runtime.ListContainers(withoutLog(ctx), filter)
	if err != nil {
		return nil, r.callFailed("ListContainers", err)
	}
	out := make([]Container, len(list))
	for i, c := range list {
		out[i] = decodeContainer(r.Name(), c)
	}
	return out, nil
}

// Status asks for one container. Containers that do not exist are an error like any other.
func (r *Runtime) Status(ctx context.Context, containerID string) (Status, error) {
	_, id := splitID(containerID)
	response, err := r.runtime.ContainerStatus(withoutLog(ctx), id, true)
	if err != nil {
		return Status{}, r.callFailed("ContainerStatus", err)
	}
	return decodeStatus(r.Name(), response), nil
}

// Env asks the container itself for its environment, through its env command. Values with line breaks
// come out broken, and images without such a command are an error: Status is better where it works.
func (r *Runtime) Env(ctx context.Context, containerID string) (map[string]string, error) {
	output, err := r.Exec(ctx, containerID, []string{"env"}, envTimeout)
	if err != nil {
		return nil, err
	}
	return parseEnv(strings.Split(string(output), "\n")), nil
}

// Exec runs a command in a container and returns what it printed. A command that ends with another code than
// 0 or takes longer than the timeout, which is at least a second, is an error. Errors quote neither the command
// nor what it printed: either may hold secrets.
func (r *Runtime) Exec(ctx context.Context, containerID string, command []string, timeout time.Duration) ([]byte, error) {
	_, id := splitID(containerID)
	output, _, err := r.runtime.ExecSync(withoutLog(ctx), id, command, wholeSeconds(timeout))
	if exit, ok := errors.AsType[utilexec.CodeExitError](err); ok {
		return nil, fmt.Errorf("the command ended with code %d", exit.Code)
	}
	if errors.Is(err, criclient.ErrCommandTimedOut) {
		return nil, fmt.Errorf("the command took longer than %s", timeout)
	}
	if err != nil {
		return nil, r.callFailed("ExecSync", err)
	}
	return output, nil
}

// Stop ends a container: the stop signal, and after the grace the kill. It returns when the container has
// ended. One that does not exist or has ended is no error.
func (r *Runtime) Stop(ctx context.Context, containerID string, grace time.Duration) error {
	_, id := splitID(containerID)
	if err := r.runtime.StopContainer(withoutLog(ctx), id, int64(wholeSeconds(grace)/time.Second)); err != nil {
		return r.callFailed("StopContainer", err)
	}
	return nil
}

// wholeSeconds rounds up to seconds, the unit of the API.
func wholeSeconds(d time.Duration) time.Duration {
	return time.Duration(math.Ceil(d.Seconds())) * time.Second
}

// PodIP returns the address of a sandbox; empty for a pod in the host's network.
func (r *Runtime) PodIP(ctx context.Context, sandboxID string) (string, error) {
	response, err := r.runtime.PodSandboxStatus(withoutLog(ctx), sandboxID, false)
	if err != nil {
		return "", r.callFailed("PodSandboxStatus", err)
	}
	return response.GetStatus().GetNetwork().GetIp(), nil
}

// Images lists what the runtime keeps.
func (r *Runtime) Images(ctx context.Context) ([]Image, error) {
	list, err := r.images.ListImages(withoutLog(ctx), nil)
	if err != nil {
		return nil, r.callFailed("ListImages", err)
	}
	out := make([]Image, len(list))
	for i, image := range list {
		out[i] = Image{ID: image.GetId(), Tags: image.GetRepoTags(), Digests: image.GetRepoDigests()}
	}
	return out, nil
}

// Pull pulls an image. It takes as long as the context allows. The maps of the request are not kept.
func (r *Runtime) Pull(ctx context.Context, pull Pull) error {
	var auth *runtimev1.AuthConfig
	if a := pull.Auth; a != nil {
		auth = &runtimev1.AuthConfig{
			Username: a.Username, Password: a.Password,
			IdentityToken: a.IdentityToken, RegistryToken: a.RegistryToken,
		}
	}
	s := &pull.Sandbox
	sandbox := &runtimev1.PodSandboxConfig{
		Metadata: &runtimev1.PodSandboxMetadata{Name: s.Name, Namespace: s.Namespace, Uid: s.UID},
		Labels:   s.Labels, Annotations: s.Annotations,
	}
	if _, err := r.images.PullImage(withoutLog(ctx), &runtimev1.ImageSpec{Image: pull.Reference}, auth, sandbox); err != nil {
		return r.callFailed("PullImage", err)
	}
	return nil
}

// IsUnavailable reports whether a call failed because the runtime could not be reached: it may work later.
func IsUnavailable(err error) bool {
	return status.Code(err) == codes.Unavailable || errors.Is(err, errNoRuntime)
}

// IsNotFound reports whether a call failed because there is no such container.
func IsNotFound(err error) bool { return status.Code(err) == codes.NotFound }
