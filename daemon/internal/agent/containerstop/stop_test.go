package containerstop_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientevents "k8s.io/client-go/tools/events"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"github.com/flotilla-project/flotilla/core/testing/await"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/containerstop"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/cri"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/events"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/metrics"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/simulate"
)

// deaf returns a port at which connections are neither accepted nor refused, as behind a policy that drops packets: the
// queue of its listener is full.
func deaf(t *testing.T) int {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Close(fd) })
	require.NoError(t, syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	require.NoError(t, syscall.Listen(fd, 0))
	name, err := syscall.Getsockname(fd)
	require.NoError(t, err)
	port := name.(*syscall.SockaddrInet4).Port
	for range 3 {
		if c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), 100*time.Millisecond); err == nil {
			t.Cleanup(func() { _ = c.Close() })
		}
	}
	return port
}

// talker returns a port at which every connection is told something that is no HTTP.
func talker(t *testing.T, words string) int {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1024))
			_, _ = c.Write([]byte(words))
			_ = c.Close()
		}
	}()
	return listener.Addr().(*net.TCPAddr).Port
}

// A hook takes of the grace what it has run for, and an event says why it has failed without a word of the server's.
func TestHooksOverHTTP(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/broken" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(server.Close)
	answers := server.Listener.Addr().(*net.TCPAddr).Port
	cases := []struct {
		name, host, path string
		port             int
		event            string // none if the hook succeeds
	}{
		{name: "an answer", port: answers},
		{name: "a failure", path: "/broken", port: answers, event: "PreStop hook failed: the response has status code 500"},
		{name: "nobody answers", port: deaf(t), event: "PreStop hook failed: the node agent cannot connect to the HTTP server: " +
			"a NetworkPolicy must allow pods of the agent's namespace"},
		{name: "no HTTP", port: talker(t, "220 db-7 build 1234\r\n"), event: "PreStop hook failed: the HTTP server returned an invalid response"},
		{name: "the agent itself", host: "localhost", port: answers, event: "PreStop hook failed: the host is a loopback address, " +
			"and the node agent has a different network than the pod"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			folder := simulate.Folder(t)
			fake := simulate.NewRuntime(t, "containerd", filepath.Join(folder, "containerd.sock"))
			m, err := metrics.New(prometheus.NewRegistry())
			require.NoError(t, err)
			runtimes := cri.New(cri.Config{Root: folder, Metrics: m, Clock: clock.RealClock{}, Log: logr.Discard()})
			runtimes.Probe(t.Context())
			fake.Run(&corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1"},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}},
				Status:     corev1.PodStatus{PodIP: "127.0.0.1"}, // where the test's servers listen
			}, "main")
			list, err := runtimes.Containers(t.Context(), "shop", "web", nil)
			require.NoError(t, err)
			recorder := clientevents.NewFakeRecorder(9)
			stopper := &containerstop.Stopper{Runtimes: runtimes, Events: &events.Recorder{EventRecorder: recorder}, Metrics: m, Clock: clock.RealClock{}}
			request := containerstop.Request{
				Container: list[0], Grace: 20 * time.Second, Message: "stop",
				PreStop: &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Host: c.host, Port: intstr.FromInt(c.port), Path: c.path}},
			}
			took, err := stopper.Hook(t.Context(), request)
			require.NoError(t, err)
			require.NoError(t, stopper.Signal(t.Context(), request, took))
			assert.Equal(t, int64(20), fake.Calls("StopContainer")[0].Request.(*runtimev1.StopContainerRequest).Timeout)
			assert.Equal(t, "Normal Killing stop", await.Receive(t, recorder.Events))
			if c.event == "" {
				assert.Empty(t, recorder.Events)
			} else {
				assert.Equal(t, "Warning FailedPreStopHook "+c.event, await.Receive(t, recorder.Events))
			}
		})
	}
}
