package simulate

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Runtime is a simulated container runtime.
type Runtime struct {
	runtimev1.UnimplementedRuntimeServiceServer
	runtimev1.UnimplementedImageServiceServer

	// Name is the name that the runtime reports.
	Name string
	// Socket is the path at which it listens.
	Socket string

	mu         sync.Mutex
	server     *grpc.Server
	calls      []Call
	faults     map[string]Fault
	registry   map[string]RemoteImage
	images     []*runtimev1.Image
	sandboxes  []*runtimev1.PodSandboxStatus
	containers []*Container
	changed    chan struct{}
	last       int
}

// Call is a call that the runtime has got, of those that change something.
type Call struct {
	// Method is the call's name, such as PullImage.
	Method string
	// Request is the request of the call.
	Request any
	// At is when the call came in.
	At time.Time
}

// Fault runs before a call is answered. It may wait, until the context ends at the longest, and its error is
// the answer.
type Fault func(ctx context.Context, request any) error

// Folder makes a folder with a path that is short enough for sockets.
func Folder(t testing.TB) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "cri") //nolint:usetesting // t.TempDir is longer than a socket's path may be
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}

// NewRuntime makes a runtime that listens at a path until the end of the test.
func NewRuntime(t testing.TB, name, socket string) *Runtime {
	t.Helper()
	r := &Runtime{
		Name:     name,
		Socket:   socket,
		faults:   map[string]Fault{},
		registry: map[string]RemoteImage{},
		changed:  make(chan struct{}),
	}
	require.NoError(t, os.MkdirAll(filepath.Dir(socket), 0o755))
	r.Start(t)
	t.Cleanup(r.Stop)
	return r
}

// Start makes the runtime listen, with the state that it kept while it was stopped.
func (r *Runtime) Start(t testing.TB) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", r.Socket)
	require.NoError(t, err)
	server := grpc.NewServer(grpc.UnaryInterceptor(r.intercept))
	runtimev1.RegisterRuntimeServiceServer(server, r)
	runtimev1.RegisterImageServiceServer(server, r)
	r.mu.Lock()
	r.server = server
	r.mu.Unlock()
	go func() { _ = server.Serve(listener) }()
}

// Stop ends the runtime as a crash does: calls under way lose their connection and the socket goes.
func (r *Runtime) Stop() {
	r.mu.Lock()
	server := r.server
	r.mu.Unlock()
	server.Stop()
}

// Fail makes calls of a method meet a fault; nil ends that.
func (r *Runtime) Fail(method string, fault Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults[method] = fault
}

// Calls returns the calls of a method so far.
func (r *Runtime) Calls(method string) []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.calls), func(c Call) bool { return c.Method != method })
}

func (r *Runtime) intercept(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	method := filepath.Base(info.FullMethod)
	r.mu.Lock()
	fault := r.faults[method]
	r.calls = append(r.calls, Call{
		Method:  method,
		Request: request,
		At:      time.Now(),
	})
	r.mu.Unlock()
	if fault != nil {
		if err := fault(ctx, request); err != nil {
			return nil, err
		}
	}
	return handle(ctx, request)
}

// Version implements the call.
func (r *Runtime) Version(context.Context, *runtimev1.VersionRequest) (*runtimev1.VersionResponse, error) {
	return &runtimev1.VersionResponse{
		Version:           "0.1.0",
		RuntimeName:       r.Name,
		RuntimeVersion:    "1",
		RuntimeApiVersion: "v1",
	}, nil
}

// newID returns an ID that was not given out before. The lock is held.
func (r *Runtime) newID(prefix string) string {
	r.last++
	return fmt.Sprintf("%s%d", prefix, r.last)
}

// notify informs waiting callers of Containers about a change. The lock is held.
func (r *Runtime) notify() {
	close(r.changed)
	r.changed = make(chan struct{})
}
