package cri

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/metrics"
)

const (
	// callTimeout bounds calls that take a moment; commands get it on top of their own time.
	callTimeout = 5 * time.Second
	// slowTimeout bounds questions about images, and the time of a runtime to end a container after its grace: a process with
	// much memory, or one that waits for a disk, is not gone at once. Kubelets wait as long.
	slowTimeout = 2 * time.Minute
	// envTimeout bounds the command that prints an environment.
	envTimeout = 3 * time.Second
	// maxMessage is the longest answer that is read.
	maxMessage = 16 << 20
	// absentImage is asked for to see whether the service of images works.
	absentImage = "flotilla.invalid/absent:probe"
)

// Runtime is one container runtime of the node. Its methods may be called at any time: while the runtime is
// unavailable they return errors, and once it is available again they succeed.
type Runtime struct {
	name        atomic.Pointer[string] // another runtime may take over the socket
	connection  *grpc.ClientConn
	runtime     runtimev1.RuntimeServiceClient
	images      runtimev1.ImageServiceClient
	metrics     *metrics.Metrics
	unavailable func() // called when a call finds the runtime unavailable
}

// connect makes the connection to a socket and probes both services. Nothing of it is left if that fails.
func connect(ctx context.Context, path string, m *metrics.Metrics, unavailable func()) (*Runtime, error) {
	connection, err := grpc.NewClient("unix://"+path,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: reconnects(), MinConnectTimeout: callTimeout}))
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	r := &Runtime{
		connection:  connection,
		metrics:     m,
		unavailable: unavailable,
		runtime:     runtimev1.NewRuntimeServiceClient(connection),
		images:      runtimev1.NewImageServiceClient(connection),
	}
	if err = r.probe(ctx); err == nil {
		err = r.probeImages(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

// reconnects returns the pauses between attempts to connect again, which are shorter than those for remote servers.
func reconnects() backoff.Config {
	c := backoff.DefaultConfig
	c.BaseDelay, c.MaxDelay = 100*time.Millisecond, 3*time.Second
	return c
}

// probe requests the version, which has the runtime's name.
func (r *Runtime) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	version, err := r.runtime.Version(ctx, &runtimev1.VersionRequest{Version: "v1"})
	if err != nil {
		return r.countError("Version", err)
	}
	name := version.GetRuntimeName()
	r.name.Store(&name)
	return nil
}

// probeImages asks for an image that no runtime has: unlike a list of all, the answer takes a moment.
func (r *Runtime) probeImages(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if _, err := r.images.ImageStatus(ctx, &runtimev1.ImageStatusRequest{Image: &runtimev1.ImageSpec{Image: absentImage}}); err != nil {
		return r.countError("ImageStatus", err)
	}
	return nil
}

func (r *Runtime) close() error { return r.connection.Close() }

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

// Name returns the name that the runtime reports, such as containerd. IDs of containers begin with it.
func (r *Runtime) Name() string { return *r.name.Load() }

// Containers lists the containers of a pod, also those that have ended. An empty namespace and name mean
// all pods.
func (r *Runtime) Containers(ctx context.Context, namespace, name string) ([]Container, error) {
	filter := &runtimev1.ContainerFilter{}
	if name != "" {
		filter.LabelSelector = map[string]string{podNamespaceLabel: namespace, podNameLabel: name}
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	list, err := r.runtime.ListContainers(ctx, &runtimev1.ListContainersRequest{Filter: filter})
	if err != nil {
		return nil, r.callFailed("ListContainers", err)
	}
	out := make([]Container, len(list.GetContainers()))
	for i, c := range list.GetContainers() {
		out[i] = decodeContainer(r.Name(), c)
	}
	return out, nil
}

// Status asks for one container. Containers that do not exist are an error like any other.
func (r *Runtime) Status(ctx context.Context, containerID string) (Status, error) {
	return r.status(ctx, containerID, false)
}

// Details asks for one container with its environment. The runtime answers with all that it knows, which is long.
func (r *Runtime) Details(ctx context.Context, containerID string) (Status, error) {
	return r.status(ctx, containerID, true)
}

func (r *Runtime) status(ctx context.Context, containerID string, verbose bool) (Status, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, id := splitID(containerID)
	response, err := r.runtime.ContainerStatus(ctx, &runtimev1.ContainerStatusRequest{ContainerId: id, Verbose: verbose})
	if err != nil {
		return Status{}, r.callFailed("ContainerStatus", err)
	}
	return decodeStatus(r.Name(), response), nil
}

// Env asks the container itself for its environment, through its env command. Values with line breaks
// come out broken, and images without such a command are an error: Details is better where it works.
func (r *Runtime) Env(ctx context.Context, containerID string) (map[string]string, error) {
	output, err := r.Exec(ctx, containerID, []string{"env"}, envTimeout)
	if err != nil {
		return nil, err
	}
	return parseEnv(strings.Split(string(output), "\n")), nil
}

// Exec runs a command in a container and returns its output. A command that ends with another code than
// 0 or takes longer than the timeout, which is at least a second, is an error. Errors quote neither the command
// nor its output: either may hold secrets.
func (r *Runtime) Exec(ctx context.Context, containerID string, command []string, timeout time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout+callTimeout)
	defer cancel()
	_, id := splitID(containerID)
	response, err := r.runtime.ExecSync(ctx, &runtimev1.ExecSyncRequest{
		ContainerId: id,
		Cmd:         command,
		Timeout:     wholeSeconds(timeout),
	})
	switch {
	case status.Code(err) == codes.DeadlineExceeded:
		return nil, fmt.Errorf("the command took longer than %s", timeout)
	case err != nil:
		return nil, r.callFailed("ExecSync", err)
	case response.GetExitCode() != 0:
		return nil, fmt.Errorf("the command ended with code %d", response.GetExitCode())
	}
	return response.GetStdout(), nil
}

// Stop ends a container: the stop signal, and after the grace the kill. It returns when the container has
// ended. One that does not exist or has ended is no error.
func (r *Runtime) Stop(ctx context.Context, containerID string, grace time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, grace+slowTimeout)
	defer cancel()
	_, id := splitID(containerID)
	if _, err := r.runtime.StopContainer(ctx, &runtimev1.StopContainerRequest{ContainerId: id, Timeout: wholeSeconds(grace)}); err != nil {
		return r.callFailed("StopContainer", err)
	}
	return nil
}

// wholeSeconds rounds up to seconds, the unit of the API.
func wholeSeconds(d time.Duration) int64 { return int64(math.Ceil(d.Seconds())) }

// PodIP returns the address of a sandbox; empty for a pod in the host's network.
func (r *Runtime) PodIP(ctx context.Context, sandboxID string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := r.runtime.PodSandboxStatus(ctx, &runtimev1.PodSandboxStatusRequest{PodSandboxId: sandboxID})
	if err != nil {
		return "", r.callFailed("PodSandboxStatus", err)
	}
	return response.GetStatus().GetNetwork().GetIp(), nil
}

// Image asks for one image by its full reference; nil if the runtime does not have it. Kubelets ask the same before they
// pull. The answer takes a moment, unlike a list of all images.
func (r *Runtime) Image(ctx context.Context, reference string) (*Image, error) {
	ctx, cancel := context.WithTimeout(ctx, slowTimeout)
	defer cancel()
	response, err := r.images.ImageStatus(ctx, &runtimev1.ImageStatusRequest{Image: &runtimev1.ImageSpec{Image: reference}})
	switch {
	case IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, r.callFailed("ImageStatus", err)
	case response.GetImage().GetId() == "":
		return nil, nil
	}
	return &Image{ID: response.GetImage().GetId()}, nil
}

// Works returns why the runtime manages no images now; nil if it does.
func (r *Runtime) Works(ctx context.Context) error { return r.probeImages(ctx) }

// Pull pulls an image. It takes as long as the context allows. The maps of the request are not kept.
func (r *Runtime) Pull(ctx context.Context, pull Pull) error {
	var auth *runtimev1.AuthConfig
	if a := pull.Auth; a != nil {
		auth = &runtimev1.AuthConfig{
			Username:      a.Username,
			Password:      a.Password,
			IdentityToken: a.IdentityToken,
			RegistryToken: a.RegistryToken,
		}
	}
	s := &pull.Sandbox
	sandbox := &runtimev1.PodSandboxConfig{
		Metadata: &runtimev1.PodSandboxMetadata{
			Name:      s.Name,
			Namespace: s.Namespace,
			Uid:       s.UID,
		},
		Labels:      s.Labels,
		Annotations: s.Annotations,
	}
	request := &runtimev1.PullImageRequest{
		Image:         &runtimev1.ImageSpec{Image: pull.Reference},
		Auth:          auth,
		SandboxConfig: sandbox,
	}
	if _, err := r.images.PullImage(ctx, request); err != nil {
		return r.callFailed("PullImage", err)
	}
	return nil
}

// IsUnavailable reports whether a call failed because the runtime could not be reached, or because none has answered its
// last probe: it may work later.
func IsUnavailable(err error) bool {
	_, none := errors.AsType[noneReadyError](err)
	return none || status.Code(err) == codes.Unavailable
}

// IsLate reports whether a call failed because it exceeded its time: its effect may still happen.
func IsLate(err error) bool { return status.Code(err) == codes.DeadlineExceeded }

// IsNotFound reports whether a call failed because there is no such container.
func IsNotFound(err error) bool { return status.Code(err) == codes.NotFound }
