package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/flotilla-project/flotilla/core/testing/await"
)

const (
	probeImage = "example.com/flotilla/probe:1"
)

// skipUnlessPossible skips the test on a machine that cannot run nodes, or that has not built them yet, because a build
// takes minutes.
func skipUnlessPossible(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("a real cluster takes half a minute: not with -short")
	}
	if err := checkRequirements(t.Context()); err != nil {
		skip(t, "a real cluster cannot run here: %v", err)
	}
	if !Built(Options{}, Everything) {
		skip(t, "the binaries are not built yet: run `go run ./test/cluster/cmd/cluster build`")
	}
}

// skip skips the test. Under CI it fails the test instead, because no test may be skipped there.
func skip(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// testOutput passes a cluster's progress on to the test's log.
type testOutput struct{ t *testing.T }

func (o testOutput) Write(line []byte) (int, error) {
	o.t.Log(strings.TrimSpace(string(line)))
	return len(line), nil
}

func TestClusterRunsPodsSurvivesCrashesAndLeavesNothing(t *testing.T) {
	skipUnlessPossible(t)
	ctx := t.Context()
	options := Options{Name: fmt.Sprintf("test-%d", os.Getpid()), Nodes: 1, Out: testOutput{t}}
	devices, folders := deviceNames(t), machineFolders(t)
	c, err := Start(ctx, options)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := Remove(context.WithoutCancel(ctx), options); err != nil {
			assert.ErrorIs(t, err, ErrNotRunning)
		}
	})
	same, err := Start(ctx, Options{Name: options.Name})
	require.NoError(t, err, "starting a cluster that runs is harmless")
	assert.Equal(t, c.Kubeconfig(), same.Kubeconfig())

	require.NoError(t, c.PushImage(ctx, probeImage, probe(t)))
	_, err = c.client.CoreV1().Pods("default").Create(ctx, probePod(), metav1.CreateOptions{})
	require.NoError(t, err)
	before := awaitRunning(t, c, 0)
	assertReachesAPIServer(t, c, before)
	assertAudited(t, c)

	status, err := c.Status(ctx)
	require.NoError(t, err)
	namespaces := networkNamespaces(t, status.Machines)
	require.NoError(t, c.Node(0).Stop(ctx))
	stopped, err := c.Status(ctx)
	require.NoError(t, err)
	assert.Zero(t, stopped.Machines[1].PID)
	require.NoError(t, c.Node(0).Start(ctx))
	assertReachesAPIServer(t, c, awaitRunning(t, c, 1))

	require.NoError(t, c.PushImage(ctx, probeImage, probe(t)), "nodes forget an image that is pushed again")
	status, err = c.Status(ctx)
	require.NoError(t, err)
	namespaces = append(namespaces, networkNamespaces(t, status.Machines)...)
	require.NoError(t, c.Down(ctx))
	assertNothingLeft(t, c.state, namespaces)
	assert.Equal(t, devices, deviceNames(t), "the machine's own network is untouched")
	assert.Equal(t, folders, machineFolders(t), "the machine's own folders are untouched")
}

func TestSimulatedClusterNeedsNoNodes(t *testing.T) {
	skipUnlessPossible(t)
	options := Options{Name: fmt.Sprintf("simulated-%d", os.Getpid()), Simulated: true, Nodes: 7, Out: testOutput{t}}
	c, err := Start(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Down(context.WithoutCancel(t.Context()))) })
	assert.Empty(t, c.Nodes())
	assert.Empty(t, c.Registry())
	version, err := c.client.Discovery().ServerVersion()
	require.NoError(t, err)
	assert.Equal(t, "v"+DefaultKubernetes, version.GitVersion)
}

// probe returns an image of testdata/probe.
func probe(t *testing.T) v1.Image {
	t.Helper()
	program := filepath.Join(t.TempDir(), "probe")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./testdata/probe")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	image, err := staticImage(program)
	require.NoError(t, err)
	return image
}

// probePod returns a pod with the common settings of test pods.
func probePod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "probe"},
		Spec: corev1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{Name: "probe", Image: probeImage}},
		},
	}
}

// awaitRunning waits until the container of the pod runs after that many restarts, and returns the pod.
func awaitRunning(t *testing.T, c *Cluster, restarts int32) *corev1.Pod {
	t.Helper()
	ctx := t.Context()
	var pod *corev1.Pod
	await.Until(t, func(t *assert.CollectT) {
		var err error
		pod, err = c.client.CoreV1().Pods("default").Get(ctx, "probe", metav1.GetOptions{})
		require.NoError(t, err)
		require.Len(t, pod.Status.ContainerStatuses, 1)
		container := pod.Status.ContainerStatuses[0]
		assert.NotNil(t, container.State.Running, "%+v", container.State)
		assert.Equal(t, restarts, container.RestartCount)
	})
	return pod
}

// assertReachesAPIServer requires that the pod reports an answer of the API server. It asks the pod from the machine.
func assertReachesAPIServer(t *testing.T, c *Cluster, pod *corev1.Pod) {
	t.Helper()
	const want = "https://10.96.0.1:443/healthz answers ok"
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			return c.DialContext(ctx, address)
		},
	}}
	await.Until(t, func(t *assert.CollectT) {
		response, err := client.Get("http://" + pod.Status.PodIP + ":8080")
		require.NoError(t, err)
		defer response.Body.Close()
		answer, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		assert.Equal(t, want, string(answer))
	})
	log, err := c.client.CoreV1().Pods("default").GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
	require.NoError(t, err)
	assert.Contains(t, string(log), want)
}

// assertAudited finds the test's own write in the audit log.
func assertAudited(t *testing.T, c *Cluster) {
	t.Helper()
	audit, err := os.ReadFile(c.AuditLog())
	require.NoError(t, err)
	for line := range strings.Lines(string(audit)) {
		if strings.Contains(line, `"requestURI":"/api/v1/namespaces/default/pods"`) && strings.Contains(line, `"verb":"create"`) {
			assert.Contains(t, line, `"username":"admin"`)
			assert.Contains(t, line, `"userAgent":"`+rest.DefaultKubernetesUserAgent()+`"`)
			return
		}
	}
	assert.Fail(t, "the creation of the pod is not in the audit log")
}

func networkNamespaces(t *testing.T, machines []MachineStatus) []string {
	t.Helper()
	var names []string
	for _, m := range machines {
		name, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", m.PID))
		require.NoError(t, err)
		names = append(names, name)
	}
	return names
}

func deviceNames(t *testing.T) []string {
	t.Helper()
	devices, err := net.Interfaces()
	require.NoError(t, err)
	var names []string
	for _, device := range devices {
		names = append(names, device.Name)
	}
	return names
}

// machineFolders returns the folders that containerd and the components of Kubernetes make outside a node's own
// folders, with the files in them. A machine with installed packages of them has some.
func machineFolders(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, folder := range []string{"/tmp/hostpath_pv", "/opt/containerd", "/usr/libexec/kubernetes"} {
		err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if err == nil {
				found[folder] = append(found[folder], path)
			}
			return err
		})
		if !errors.Is(err, fs.ErrNotExist) {
			require.NoError(t, err)
		}
	}
	return found
}

// assertNothingLeft looks for processes, namespaces, mounts, control groups and files.
func assertNothingLeft(t *testing.T, s state, namespaces []string) {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(t, err)
	for _, process := range processes {
		command, _ := os.ReadFile(filepath.Join(process, "cmdline"))
		assert.NotContains(t, string(command), s.Folder)
		namespace, _ := os.Readlink(filepath.Join(process, "ns/net"))
		assert.NotContains(t, namespaces, namespace, "%s: %s", process, command)
		mounts, _ := os.ReadFile(filepath.Join(process, "mountinfo"))
		assert.NotContains(t, string(mounts), s.Folder)
	}
	roots, err := hierarchies()
	require.NoError(t, err)
	for _, root := range roots {
		assert.NoDirExists(t, filepath.Join(root, cgroupOf(s.Name)))
	}
	assert.NoDirExists(t, s.Folder)
}
