package agent_test

import (
	"context"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"

	"github.com/flotilla-project/flotilla/daemon/internal/agent"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/simulate"
)

const digest = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

func TestImagesArePulledAndTheStatusTells(t *testing.T) {
	n := givenNode(t)
	n.runtime.AddRemoteImage("docker.io/library/app:1", simulate.RemoteImage{ID: "sha256:one"})
	n.runtime.AddRemoteImage("reg.io/x@"+digest, simulate.RemoteImage{ID: "sha256:two", Digest: digest})
	n.wantImages(map[string]v1beta1.ImageSpec{
		"app": {Tags: []v1beta1.ImageTagSpec{tag("1", 3)}, SandboxConfig: &v1beta1.SandboxConfig{
			Labels: map[string]string{"io.kubernetes.image.app": "foo"}, Annotations: map[string]string{"metrics.tags": "cluster=cn"},
		}},
		"reg.io/x": tags(tag(digest, 0)),
	})
	status := n.eventuallyPhases(map[string]v1beta1.ImagePullPhase{"app:1": v1beta1.ImageSucceeded, "reg.io/x:" + digest: v1beta1.ImageSucceeded})

	assert.Equal(t, []int32{2, 2, 0, 0, 0}, []int32{status.Desired, status.Succeeded, status.Failed, status.Pulling, status.Waiting})
	one := status.ImageStatuses["app"].Tags[0]
	assert.Equal(t, int64(3), one.Version)
	assert.Equal(t, int32(100), one.Progress)
	assert.Equal(t, "app@sha256:one", one.ImageID)
	assert.NotNil(t, one.StartTime)
	assert.NotNil(t, one.CompletionTime)
	assert.Equal(t, v1beta1.SyncSucceeded, status.FirstSyncStatus.Status)

	pulled := n.eventuallyEvent(n.name, "PullImageSucceed")
	assert.Equal(t, corev1.EventTypeNormal, pulled.Type)
	assert.Equal(t, n.name, pulled.ReportingInstance, "a policy can tell whose event it is")

	for _, call := range n.runtime.Calls("PullImage") {
		request := call.Request.(*runtimev1.PullImageRequest)
		sandbox := request.SandboxConfig
		assert.Equal(t, "kruise-daemon", sandbox.Annotations["apps.kruise.io/pulling-image-by"])
		assert.Equal(t, n.name, sandbox.Metadata.Name)
		if request.Image.Image == "docker.io/library/app:1" {
			assert.Equal(t, map[string]string{"io.kubernetes.image.app": "foo"}, sandbox.Labels)
			assert.Equal(t, "cluster=cn", sandbox.Annotations["metrics.tags"])
		}
	}
	_, text := n.get("/metrics")
	assert.Contains(t, text, `kruise_agent_image_pulls{phase="Succeeded"} 2`)
	assert.Contains(t, text, `kruise_agent_image_pull_seconds_count{result="succeeded"} 2`)
	assert.Contains(t, text, `kruise_agent_runtime_ready 1`)
}

func TestAnImageThatIsThereIsPulledOnlyWhenAlwaysIsAskedFor(t *testing.T) {
	n := givenNode(t)
	n.runtime.AddImage("sha256:one", []string{"docker.io/library/app:1"}, nil)
	n.runtime.AddImage("sha256:two", nil, []string{"docker.io/library/app@" + digest})
	n.wantImages(map[string]v1beta1.ImageSpec{"app": tags(tag("1", 1), tag(digest, 1))})
	status := n.eventuallyPhases(map[string]v1beta1.ImagePullPhase{"app:1": v1beta1.ImageSucceeded, "app:" + digest: v1beta1.ImageSucceeded})
	assert.Equal(t, "app@sha256:two", status.ImageStatuses["app"].Tags[1].ImageID)
	assert.Empty(t, n.runtime.Calls("PullImage"))

	n.runtime.AddRemoteImage("docker.io/library/app:1", simulate.RemoteImage{ID: "sha256:one"})
	n.wantImages(map[string]v1beta1.ImageSpec{"app": tags(tag("1", 2, func(t *v1beta1.ImageTagSpec) { t.ImagePullPolicy = v1beta1.PullAlways }))})
	n.eventually(func(c *assert.CollectT, s v1beta1.NodeImageStatus) {
		require.Len(c, s.ImageStatuses["app"].Tags, 1)
		assert.Equal(c, int64(2), s.ImageStatuses["app"].Tags[0].Version)
		assert.Equal(c, v1beta1.ImageSucceeded, s.ImageStatuses["app"].Tags[0].Phase)
	})
	assert.Len(t, n.runtime.Calls("PullImage"), 1)
}

// gate holds pulls until it is opened.
type gate struct {
	open chan struct{}
	once sync.Once
}

func (g *gate) fault(ctx context.Context, _ any) error {
	select {
	case <-g.open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *gate) Open() { g.once.Do(func() { close(g.open) }) }

func TestNoMoreThanTheWorkersPullAtATime(t *testing.T) {
	n := givenNode(t, func(o *agent.Options) { o.MaxWorkersForPullImage = 2 })
	slow := &gate{open: make(chan struct{})}
	n.runtime.Fail("PullImage", slow.fault)
	for _, name := range []string{"a", "b", "c"} {
		n.runtime.AddRemoteImage("docker.io/library/app:"+name, simulate.RemoteImage{ID: "sha256:" + name})
	}
	n.wantImages(map[string]v1beta1.ImageSpec{"app": tags(tag("a", 1), tag("b", 1), tag("c", 1))})
	status := n.eventuallyPhases(map[string]v1beta1.ImagePullPhase{"app:a": v1beta1.ImagePulling, "app:b": v1beta1.ImagePulling, "app:c": v1beta1.ImageWaiting})
	assert.Nil(t, status.ImageStatuses["app"].Tags[2].StartTime)
	assert.Equal(t, int32(1), status.Waiting)
	slow.Open()
	n.eventuallyPhases(map[string]v1beta1.ImagePullPhase{"app:a": v1beta1.ImageSucceeded, "app:b": v1beta1.ImageSucceeded, "app:c": v1beta1.ImageSucceeded})
}

func TestCredentialsAreThoseOfTheSecretsAndWrongOnesAreNotFollowedByNone(t *testing.T) {
	n := givenNode(t)
	n.runtime.AddRemoteImage("reg.io/x:1", simulate.RemoteImage{ID: "sha256:1", Admit: func(a *runtimev1.AuthConfig) bool {
		return a == nil || a.Username == "me" && a.Password == "right"
	}})
	wrong := n.pullSecret("wrong", `{"reg.io":{"username":"me","password":"wrong"}}`)
	n.wantImages(map[string]v1beta1.ImageSpec{"reg.io/x": {Tags: []v1beta1.ImageTagSpec{tag("1", 1)}, PullSecrets: []v1beta1.SecretReference{wrong}}})
	status := n.eventuallyPhases(map[string]v1beta1.ImagePullPhase{"reg.io/x:1": v1beta1.ImageFailed})
	assert.Contains(t, status.ImageStatuses["reg.io/x"].Tags[0].Message, "authorization failed")
	assert.Len(t, n.runtime.Calls("PullImage"), 1, "the registry would have let in nobody in particular")

	right := n.pullSecret("right", `{"reg.io":{"username":"me","password":"right"}}`)
	n.wantImages(map[string]v1beta1.ImageSpec{"reg.io/x": {Tags: []v1beta1.ImageTagSpec{tag("1", 2)}, PullSecrets: []v1beta1.SecretReference{wrong, right}}})
	n.eventuallyPhases(map[string]v1beta1.ImagePullPhase{"reg.io/x:1": v1beta1.ImageSucceeded})
	assert.Len(t, n.runtime.Calls("PullImage"), 3, "one after the other")
}

func TestAPullThatFailsIsTriedAgainAndToldToItsOwner(t *testing.T) {
	n := givenNode(t)
	owner := corev1.ObjectReference{APIVersion: "apps.kruise.io/v1beta1", Kind: "ImagePullJob", Namespace: n.name, Name: "warm-" + n.name, UID: "job-uid"}
	n.wantImages(map[string]v1beta1.ImageSpec{"gone": tags(tag("1", 1, func(t *v1beta1.ImageTagSpec) {
		t.PullPolicy.BackoffLimit = new(int32(1))
		t.OwnerReferences = []corev1.ObjectReference{owner}
	}))})
	status := n.eventuallyPhases(map[string]v1beta1.ImagePullPhase{"gone:1": v1beta1.ImageFailed})
	assert.Contains(t, status.ImageStatuses["gone"].Tags[0].Message, "docker.io/library/gone:1: not found")
	calls := n.runtime.Calls("PullImage")
	require.Len(t, calls, 2)
	assert.GreaterOrEqual(t, calls[1].At.Sub(calls[0].At), 900*time.Millisecond)
	assert.Equal(t, "job-uid", calls[0].Request.(*runtimev1.PullImageRequest).SandboxConfig.Metadata.Uid)

	for _, name := range []string{n.name, owner.Name} {
		event := n.eventuallyEvent(name, "PullImageFailed")
		assert.Equal(t, corev1.EventTypeWarning, event.Type)
		assert.Contains(t, event.Note, "Failed to pull image gone:1 on node "+n.name+": ")
	}
}

func TestTimeoutsAndDeadlinesBoundAPull(t *testing.T) {
	n := givenNode(t)
	slow := &gate{open: make(chan struct{})}
	n.runtime.Fail("PullImage", slow.fault)
	n.wantImages(map[string]v1beta1.ImageSpec{"app": tags(
		tag("deadline", 1, func(t *v1beta1.ImageTagSpec) {
			t.PullPolicy.BackoffLimit, t.PullPolicy.ActiveDeadlineSeconds = new(int32(9)), new(int64(2))
		}),
		tag("timeout", 1, func(t *v1beta1.ImageTagSpec) { t.PullPolicy.TimeoutSeconds = new(int32(1)) }),
	)})
	status := n.eventuallyPhases(map[string]v1beta1.ImagePullPhase{"app:deadline": v1beta1.ImageFailed, "app:timeout": v1beta1.ImageFailed})
	states := status.ImageStatuses["app"].Tags
	assert.Equal(t, "pulling exceeds the activeDeadlineSeconds", states[0].Message)
	assert.Equal(t, "pulling image app:timeout is canceled: it took longer than 1s", states[1].Message)
}

func TestANewVersionStopsTheOldPull(t *testing.T) {
	n := givenNode(t)
	n.runtime.AddRemoteImage("docker.io/library/app:1", simulate.RemoteImage{ID: "sha256:1"})
	slow, stopped := &gate{open: make(chan struct{})}, make(chan struct{}, 1)
	n.runtime.Fail("PullImage", func(ctx context.Context, request any) error {
		err := slow.fault(ctx, request)
		if err != nil {
			stopped <- struct{}{}
		}
		return err
	})
	n.wantImages(map[string]v1beta1.ImageSpec{"app": tags(tag("1", 1))})
	n.eventuallyPhases(map[string]v1beta1.ImagePullPhase{"app:1": v1beta1.ImagePulling})
	n.wantImages(map[string]v1beta1.ImageSpec{"app": tags(tag("1", 2))})
	await.Receive(t, stopped, "the old pull goes on")
	slow.Open()
	n.eventually(func(c *assert.CollectT, s v1beta1.NodeImageStatus) {
		require.NotEmpty(c, s.ImageStatuses["app"].Tags)
		assert.Equal(c, int64(2), s.ImageStatuses["app"].Tags[0].Version)
		assert.Equal(c, v1beta1.ImageSucceeded, s.ImageStatuses["app"].Tags[0].Phase)
	})
}

func TestARestartedAgentTakesUpWhatIsUnfinishedAndLeavesTheRest(t *testing.T) {
	n := givenNode(t)
	n.runtime.AddRemoteImage("docker.io/library/app:1", simulate.RemoteImage{ID: "sha256:1"})
	n.wantImages(map[string]v1beta1.ImageSpec{"app": tags(tag("1", 1))})
	n.eventuallyPhases(map[string]v1beta1.ImagePullPhase{"app:1": v1beta1.ImageSucceeded})
	slow := &gate{open: make(chan struct{})}
	n.runtime.Fail("PullImage", slow.fault)
	n.runtime.AddRemoteImage("docker.io/library/app:2", simulate.RemoteImage{ID: "sha256:2"})
	n.wantImages(map[string]v1beta1.ImageSpec{"app": tags(tag("1", 1), tag("2", 1))})
	before := n.eventuallyPhases(map[string]v1beta1.ImagePullPhase{"app:1": v1beta1.ImageSucceeded, "app:2": v1beta1.ImagePulling})

	n.stop()
	assert.Equal(t, before.ImageStatuses, n.status().ImageStatuses, "what was stopped is not reported")
	slow.Open()
	n.start()
	after := n.eventuallyPhases(map[string]v1beta1.ImagePullPhase{"app:1": v1beta1.ImageSucceeded, "app:2": v1beta1.ImageSucceeded})
	assert.Equal(t, before.ImageStatuses["app"].Tags[0], after.ImageStatuses["app"].Tags[0])
	assert.Equal(t, before.ImageStatuses["app"].Tags[1].StartTime, after.ImageStatuses["app"].Tags[1].StartTime)
}

func TestWhatTheManagerFailedStaysFailed(t *testing.T) {
	n := givenNode(t)
	slow := &gate{open: make(chan struct{})}
	n.runtime.Fail("PullImage", slow.fault)
	n.runtime.AddRemoteImage("docker.io/library/app:1", simulate.RemoteImage{ID: "sha256:1"})
	n.wantImages(map[string]v1beta1.ImageSpec{"app": tags(tag("1", 1))})
	n.eventuallyPhases(map[string]v1beta1.ImagePullPhase{"app:1": v1beta1.ImagePulling})

	image := &v1beta1.NodeImage{}
	require.NoError(t, n.client.Get(t.Context(), client.ObjectKey{Name: n.name}, image))
	base := image.DeepCopy()
	state := &image.Status.ImageStatuses["app"].Tags[0]
	state.Phase, state.CompletionTime, state.Message = v1beta1.ImageFailed, new(metav1.Now()), "node has not responded for a long time"
	require.NoError(t, n.client.Status().Patch(t.Context(), image, client.MergeFrom(base)))
	slow.Open()
	n.eventually(func(c *assert.CollectT, s v1beta1.NodeImageStatus) {
		assert.Equal(c, int32(1), s.Failed)
		assert.Equal(c, "node has not responded for a long time", s.ImageStatuses["app"].Tags[0].Message)
	})
}

func TestAMissingRuntimeIsReportedAndWaitedFor(t *testing.T) {
	n := givenNodeWithoutAgent(t)
	n.start()
	n.wantImages(map[string]v1beta1.ImageSpec{"app": tags(tag("1", 1))})
	status := n.eventuallyPhases(map[string]v1beta1.ImagePullPhase{"app:1": v1beta1.ImageWaiting})
	assert.Equal(t, v1beta1.SyncFailed, status.FirstSyncStatus.Status)
	assert.Contains(t, status.FirstSyncStatus.Message, "no container runtime found, tried "+n.folder)
	code, body := n.get("/readyz")
	assert.Equal(t, http.StatusInternalServerError, code)
	assert.Contains(t, body, "check runtime failed, err: no container runtime found, tried "+n.folder)
	assert.Contains(t, body, "check nodeImageInformerSynced ok")
	code, body = n.get("/healthz")
	assert.Equal(t, http.StatusOK, code, "a restart would not help")
	assert.Equal(t, "ok", body)

	fake := simulate.NewRuntime(t, "containerd", filepath.Join(n.folder, "containerd.sock"))
	fake.AddRemoteImage("docker.io/library/app:1", simulate.RemoteImage{ID: "sha256:1"})
	status = n.eventuallyPhases(map[string]v1beta1.ImagePullPhase{"app:1": v1beta1.ImageSucceeded})
	assert.Equal(t, v1beta1.SyncSucceeded, status.FirstSyncStatus.Status)
	n.eventuallyReady()
}

func TestARuntimeThatRestartsDuringAPullCostsOneAttempt(t *testing.T) {
	n := givenNode(t)
	n.eventuallyReady()
	n.runtime.AddRemoteImage("docker.io/library/app:1", simulate.RemoteImage{ID: "sha256:1"})
	under := make(chan struct{})
	n.runtime.Fail("PullImage", func(ctx context.Context, _ any) error {
		close(under)
		<-ctx.Done()
		return ctx.Err()
	})
	n.wantImages(map[string]v1beta1.ImageSpec{"app": tags(tag("1", 1, func(t *v1beta1.ImageTagSpec) { t.PullPolicy.BackoffLimit = new(int32(1)) }))})
	<-under
	n.runtime.Fail("PullImage", nil)
	n.runtime.Stop()
	began := time.Now()
	await.Until(t, func(c *assert.CollectT) {
		_, body := n.get("/readyz")
		assert.Contains(c, body, "check runtime failed")
		assert.Greater(c, time.Since(began), 4*time.Second, "time for two attempts that cannot succeed")
	})
	n.runtime.Start(t)
	n.eventuallyPhases(map[string]v1beta1.ImagePullPhase{"app:1": v1beta1.ImageSucceeded})
}

// A runtime that is away before a pull is begun costs no attempt, also while nobody else has noticed it.
func TestARuntimeThatIsAwayCostsNoAttempt(t *testing.T) {
	n := givenNode(t)
	n.eventuallyReady()
	n.runtime.AddRemoteImage("docker.io/library/app:1", simulate.RemoteImage{ID: "sha256:1"})
	n.runtime.Fail("ImageStatus", func(context.Context, any) error { return status.Error(codes.Unavailable, "away") })
	n.wantImages(map[string]v1beta1.ImageSpec{"app": tags(tag("1", 1, func(t *v1beta1.ImageTagSpec) { t.PullPolicy.BackoffLimit = new(int32(0)) }))})
	await.Until(t, func(check *assert.CollectT) { assert.Greater(check, len(n.runtime.Calls("ImageStatus")), 2) })
	n.runtime.Fail("ImageStatus", nil)
	n.eventuallyPhases(map[string]v1beta1.ImagePullPhase{"app:1": v1beta1.ImageSucceeded})
}

func TestADeletedNodeImageStopsItsPulls(t *testing.T) {
	n := givenNode(t)
	stopped := make(chan struct{})
	n.runtime.Fail("PullImage", func(ctx context.Context, _ any) error {
		<-ctx.Done()
		close(stopped)
		return ctx.Err()
	})
	n.wantImages(map[string]v1beta1.ImageSpec{"app": tags(tag("1", 1))})
	n.eventuallyPhases(map[string]v1beta1.ImagePullPhase{"app:1": v1beta1.ImagePulling})
	require.NoError(t, n.client.Delete(t.Context(), &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: n.name}}))
	await.Receive(t, stopped, "the pull goes on")
}
