package cri_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/cri"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/metrics"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/simulate"
)

// givenRuntimes looks for runtimes in a folder until the end of the test.
func givenRuntimes(t *testing.T, folder, file string) (*cri.Runtimes, *metrics.Metrics) {
	t.Helper()
	m, err := metrics.New(prometheus.NewRegistry())
	require.NoError(t, err)
	runtimes := cri.New(cri.Config{Root: folder, SocketFile: file, Metrics: m, Clock: clock.RealClock{}, Log: logr.Discard()})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- runtimes.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		assert.NoError(t, <-ended)
	})
	return runtimes, m
}

func eventuallyReady(t *testing.T, runtimes *cri.Runtimes) {
	t.Helper()
	await.Until(t, func(check *assert.CollectT) { assert.NoError(check, runtimes.Ready()) }, "no runtime")
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "uid-1", Annotations: map[string]string{"config": "v1"}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(7)),
			Containers: []corev1.Container{{
				Name: "main", Image: "app:1",
				Env: []corev1.EnvVar{{Name: "CONFIG", ValueFrom: &corev1.EnvVarSource{
					FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['config']"},
				}}},
				Ports:     []corev1.ContainerPort{{Name: "http", ContainerPort: 80}},
				Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"bye"}}}},
			}},
		},
		Status: corev1.PodStatus{PodIP: "10.0.0.7"},
	}
}

func TestAMissingRuntimeIsAReasonThatNamesThePaths(t *testing.T) {
	folder := simulate.Folder(t)
	runtimes, m := givenRuntimes(t, folder, "")

	err := runtimes.Ready()
	require.ErrorContains(t, err, "no container runtime found, tried")
	require.ErrorContains(t, err, filepath.Join(folder, "crio/crio.sock"))
	_, err = runtimes.Containers(t.Context(), "shop", "web", nil)
	require.Error(t, err)
	assert.Zero(t, testutil.ToFloat64(m.RuntimeReady))

	simulate.NewRuntime(t, "cri-o", filepath.Join(folder, "crio/crio.sock"))
	eventuallyReady(t, runtimes)
	await.Until(t, func(check *assert.CollectT) { assert.InDelta(check, 1, testutil.ToFloat64(m.RuntimeReady), 0) })
}

func TestTheFlagNamesTheOnlySocket(t *testing.T) {
	folder := simulate.Folder(t)
	simulate.NewRuntime(t, "containerd", filepath.Join(folder, "containerd.sock"))
	simulate.NewRuntime(t, "mine", filepath.Join(folder, "my/own.sock"))
	runtimes, _ := givenRuntimes(t, folder, "my/own.sock")
	eventuallyReady(t, runtimes)
	require.Len(t, runtimes.All(), 1)
	assert.Equal(t, "mine", runtimes.All()[0].Name())
}

func TestSeveralRuntimesAreToldApartByTheNameInContainerIDs(t *testing.T) {
	folder := simulate.Folder(t)
	first := simulate.NewRuntime(t, "containerd", filepath.Join(folder, "containerd/containerd.sock"))
	second := simulate.NewRuntime(t, "cri-o", filepath.Join(folder, "crio/crio.sock"))
	a, b := first.Run(pod("web"), "main"), second.Run(pod("web"), "main")
	runtimes, _ := givenRuntimes(t, folder, "")
	await.Until(t, func(check *assert.CollectT) { assert.Len(check, runtimes.All(), 2) })

	for id, want := range map[string]string{a: "containerd", b: "cri-o"} {
		one, err := runtimes.ForContainer(id)
		require.NoError(t, err)
		assert.Equal(t, want, one.Name())
	}
	_, err := runtimes.ForContainer("docker://1")
	require.ErrorContains(t, err, "no container runtime named docker on this node")
	_, err = runtimes.ForContainer("1")
	require.ErrorContains(t, err, "has no runtime")

	forImages, err := runtimes.ForImages()
	require.NoError(t, err)
	assert.Equal(t, "containerd", forImages.Name(), "the first in the order of discovery")
	all, err := runtimes.Containers(t.Context(), "shop", "web", nil)
	require.NoError(t, err)
	assert.Len(t, all, 2)
}

// A runtime that has answered once, and whose socket outlives it, holds up no pod that another runtime keeps.
func TestARuntimeThatHangsHoldsUpItsOwnPodsOnly(t *testing.T) {
	folder := simulate.Folder(t)
	works := simulate.NewRuntime(t, "containerd", filepath.Join(folder, "containerd/containerd.sock"))
	hangs := simulate.NewRuntime(t, "cri-o", filepath.Join(folder, "crio/crio.sock"))
	a, b := works.Run(pod("web"), "main"), hangs.Run(pod("web"), "main")
	runtimes, _ := givenRuntimes(t, folder, "")
	await.Until(t, func(check *assert.CollectT) { assert.Len(check, runtimes.All(), 2) })
	hang := func(ctx context.Context, _ any) error {
		<-ctx.Done()
		return ctx.Err()
	}
	hangs.Fail("Version", hang)
	hangs.Fail("ListContainers", hang)

	list := func(ids ...string) ([]cri.Container, error) {
		return runtimes.Containers(t.Context(), "shop", "web", ids)
	}
	all, err := list(a)
	require.NoError(t, err)
	require.Len(t, all, 1)
	assert.Equal(t, a, all[0].ID)
	runtimes.Probe(t.Context())
	before := len(hangs.Calls("ListContainers"))
	all, err = list(a)
	require.NoError(t, err)
	assert.Len(t, all, 1)
	assert.Len(t, hangs.Calls("ListContainers"), before, "a runtime that did not answer the last probe is not waited for")
	for _, ids := range [][]string{{b}, {a, b}, nil} {
		_, err = list(ids...)
		require.ErrorContains(t, err, "list containers in cri-o")
	}
}

func TestContainersCarryWhatTheKubeletWrote(t *testing.T) {
	folder := simulate.Folder(t)
	fake := simulate.NewRuntime(t, "containerd", filepath.Join(folder, "containerd.sock"))
	fake.Run(pod("other"), "main")
	fake.Exit(fake.Run(pod("web"), "main"))
	id := fake.Run(pod("web"), "main", func(c *simulate.Container) { c.Hash = 0x19fd1bfc })
	runtimes, _ := givenRuntimes(t, folder, "")
	eventuallyReady(t, runtimes)

	all, err := runtimes.Containers(t.Context(), "shop", "web", nil)
	require.NoError(t, err)
	require.Len(t, all, 2)
	assert.Equal(t, cri.StateExited, all[0].State)
	c := all[1]
	assert.Equal(t, id, c.ID)
	assert.Equal(t, cri.StateRunning, c.State)
	assert.Equal(t, cri.Pod{Namespace: "shop", Name: "web", UID: "uid-1"}, c.Pod)
	assert.Equal(t, uint64(436018172), c.Hash)
	assert.Equal(t, []string{"bye"}, c.PreStop.Exec.Command)
	assert.Equal(t, int32(80), c.Ports[0].ContainerPort)
	assert.Equal(t, new(int64(7)), c.TerminationGracePeriod)
	assert.Nil(t, c.DeletionGracePeriod)

	one, err := runtimes.ForContainer(id)
	require.NoError(t, err)
	short, err := one.Status(t.Context(), id)
	require.NoError(t, err)
	assert.Nil(t, short.Env, "all that a runtime knows is long, and asked for where it is needed")
	detail, err := one.Details(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"CONFIG": "v1"}, detail.Env)
	assert.WithinDuration(t, time.Now(), detail.StartedAt, await.Limit)
	assert.Equal(t, detail.StartedAt, short.StartedAt)
	env, err := one.Env(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, detail.Env, env)
	ip, err := one.PodIP(t.Context(), c.SandboxID)
	require.NoError(t, err)
	assert.Equal(t, "10.0.0.7", ip)
}

func TestCommandsThatFailAreNotQuoted(t *testing.T) {
	folder := simulate.Folder(t)
	fake := simulate.NewRuntime(t, "containerd", filepath.Join(folder, "containerd.sock"))
	id := fake.Run(pod("web"), "main")
	runtimes, _ := givenRuntimes(t, folder, "")
	eventuallyReady(t, runtimes)
	one, err := runtimes.ForContainer(id)
	require.NoError(t, err)

	_, err = one.Exec(t.Context(), id, []string{"false", "--password=x"}, time.Second)
	require.EqualError(t, err, "the command ended with code 1")
	fake.Fail("ExecSync", func(context.Context, any) error { return status.Error(codes.DeadlineExceeded, "too long") })
	_, err = one.Exec(t.Context(), id, []string{"sleep"}, 1500*time.Millisecond)
	require.EqualError(t, err, "the command took longer than 1.5s")
}

func TestGraceIsRoundedUpToWholeSeconds(t *testing.T) {
	folder := simulate.Folder(t)
	fake := simulate.NewRuntime(t, "containerd", filepath.Join(folder, "containerd.sock"))
	id := fake.Run(pod("web"), "main")
	runtimes, _ := givenRuntimes(t, folder, "")
	eventuallyReady(t, runtimes)
	one, err := runtimes.ForContainer(id)
	require.NoError(t, err)
	require.NoError(t, one.Stop(t.Context(), id, 1500*time.Millisecond))
	require.NoError(t, one.Stop(t.Context(), "containerd://gone", time.Second), "what is not there needs no stop")

	calls := fake.Calls("StopContainer")
	require.Len(t, calls, 2)
	assert.Equal(t, int64(2), calls[0].Request.(*runtimev1.StopContainerRequest).Timeout)
	assert.Equal(t, "c1", calls[0].Request.(*runtimev1.StopContainerRequest).ContainerId)
}

func TestARestartedRuntimeWorksAgainOverTheSameRuntimes(t *testing.T) {
	folder := simulate.Folder(t)
	fake := simulate.NewRuntime(t, "containerd", filepath.Join(folder, "containerd.sock"))
	id := fake.Run(pod("web"), "main")
	runtimes, _ := givenRuntimes(t, folder, "")
	eventuallyReady(t, runtimes)
	one, err := runtimes.ForContainer(id)
	require.NoError(t, err)

	fake.Stop()
	_, err = one.Status(t.Context(), id)
	require.Error(t, err)
	fake.Start(t)
	await.Until(t, func(check *assert.CollectT) {
		one, err = runtimes.ForContainer(id)
		require.NoError(check, err)
		_, err = one.Status(t.Context(), id)
		assert.NoError(check, err)
	}, "the connection comes back by itself")
}

func TestARuntimeThatCrashesDuringAPullIsAnErrorOfThatPull(t *testing.T) {
	folder := simulate.Folder(t)
	fake := simulate.NewRuntime(t, "containerd", filepath.Join(folder, "containerd.sock"))
	fake.AddRemoteImage("docker.io/library/app:1", simulate.RemoteImage{ID: "sha256:1"})
	under, runtimes := make(chan struct{}), (*cri.Runtimes)(nil)
	fake.Fail("PullImage", func(ctx context.Context, _ any) error {
		close(under)
		<-ctx.Done()
		return ctx.Err()
	})
	runtimes, m := givenRuntimes(t, folder, "")
	eventuallyReady(t, runtimes)
	one, err := runtimes.ForImages()
	require.NoError(t, err)

	failed := make(chan error, 1)
	go func() { failed <- one.Pull(t.Context(), cri.Pull{Reference: "docker.io/library/app:1"}) }()
	<-under
	fake.Stop()
	require.ErrorContains(t, <-failed, "PullImage")
	assert.InDelta(t, 1, testutil.ToFloat64(m.CRIErrors.WithLabelValues("PullImage")), 0)

	fake.Fail("PullImage", nil)
	fake.Start(t)
	await.Until(t, func(check *assert.CollectT) {
		one, err = runtimes.ForImages() // the one before may have been given up
		require.NoError(check, err)
		assert.NoError(check, one.Pull(t.Context(), cri.Pull{Reference: "docker.io/library/app:1"}))
	})
}

func TestPullHandsOverCredentialsAndSandbox(t *testing.T) {
	folder := simulate.Folder(t)
	fake := simulate.NewRuntime(t, "containerd", filepath.Join(folder, "containerd.sock"))
	fake.AddRemoteImage("reg.io/app@sha256:d", simulate.RemoteImage{
		ID: "sha256:1", Digest: "sha256:d",
		Admit: func(a *runtimev1.AuthConfig) bool { return a.GetUsername() == "me" && a.GetPassword() == "secret" },
	})
	runtimes, _ := givenRuntimes(t, folder, "")
	eventuallyReady(t, runtimes)
	one, err := runtimes.ForImages()
	require.NoError(t, err)

	pull := cri.Pull{Reference: "reg.io/app@sha256:d", Sandbox: cri.Sandbox{Name: "node-1", Labels: map[string]string{"a": "b"}}}
	require.ErrorContains(t, one.Pull(t.Context(), pull), "authorization failed")
	pull.Auth = &cri.Auth{Username: "me", Password: "secret", IdentityToken: "i", RegistryToken: "r"}
	require.NoError(t, one.Pull(t.Context(), pull))
	request := fake.Calls("PullImage")[1].Request.(*runtimev1.PullImageRequest)
	assert.Equal(t, "i", request.Auth.IdentityToken)
	assert.Equal(t, "r", request.Auth.RegistryToken)
	assert.Equal(t, "b", request.SandboxConfig.Labels["a"])
	assert.Equal(t, "node-1", request.SandboxConfig.Metadata.Name)

	image, err := one.Image(t.Context(), "reg.io/app@sha256:d")
	require.NoError(t, err)
	assert.Equal(t, &cri.Image{ID: "sha256:1"}, image)
	image, err = one.Image(t.Context(), "reg.io/app:1")
	require.NoError(t, err)
	assert.Nil(t, image)
	fake.Fail("ImageStatus", func(context.Context, any) error { return status.Error(codes.NotFound, "no such image") })
	image, err = one.Image(t.Context(), "reg.io/app:1")
	require.NoError(t, err, "some runtimes answer so")
	assert.Nil(t, image)
}

func TestARuntimeThatAnswersErrorsIsNotReady(t *testing.T) {
	folder := simulate.Folder(t)
	fake := simulate.NewRuntime(t, "containerd", filepath.Join(folder, "containerd.sock"))
	fake.Fail("ImageStatus", func(context.Context, any) error { return status.Error(codes.Internal, "disk is gone") })
	runtimes, _ := givenRuntimes(t, folder, "")
	await.Until(t, func(c *assert.CollectT) {
		assert.ErrorContains(c, runtimes.Ready(), "disk is gone")
	})
	fake.Fail("ImageStatus", nil)
	eventuallyReady(t, runtimes)
}
