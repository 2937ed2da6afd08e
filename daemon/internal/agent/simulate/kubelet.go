package simulate

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/pods/hash"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
)

// Kubelet keeps the containers of one pod running in a runtime and reports them.
type Kubelet struct {
	Client  client.Client
	Runtime *Runtime
}

// RunPod starts the containers of a pod, starts them again when they end, and writes the pod's status, until
// the end of the test. It returns once the pod's first status is written.
func (k *Kubelet) RunPod(t testing.TB, pod *corev1.Pod) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	t.Cleanup(func() {
		stop()
		<-ended
	})
	require.NoError(t, k.sync(ctx, client.ObjectKeyFromObject(pod)))
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			_, changed := k.Runtime.Containers(pod)
			_ = k.sync(ctx, client.ObjectKeyFromObject(pod)) // the next change or tick tries again
			timer := time.NewTimer(200 * time.Millisecond)
			select {
			case <-ctx.Done():
			case <-changed:
			case <-timer.C:
			}
			timer.Stop()
		}
	}()
}

// sync starts containers that do not run and writes the status.
func (k *Kubelet) sync(ctx context.Context, key client.ObjectKey) error {
	pod := &corev1.Pod{}
	if err := k.Client.Get(ctx, key, pod); err != nil {
		return err
	}
	now, _ := k.Runtime.Containers(pod)
	for _, spec := range podspec.LongRunning(&pod.Spec) {
		running := slices.ContainsFunc(now, func(c Container) bool {
			return c.Spec.Name == spec.Name && c.State == runtimev1.ContainerState_CONTAINER_RUNNING
		})
		if !running {
			k.Runtime.Run(pod, spec.Name, func(c *Container) { c.Hash = plainHash(spec) })
		}
	}
	return k.report(ctx, pod)
}

// plainHash returns the hash that kubelets put on a container.
func plainHash(spec *corev1.Container) uint64 {
	text, _ := json.Marshal(map[string]string{"image": spec.Image, "name": spec.Name})
	return uint64(hash.Object(text))
}

// report writes the status of the containers, sorted by name as kubelets do, and the pod's readiness.
func (k *Kubelet) report(ctx context.Context, pod *corev1.Pod) error {
	base := pod.DeepCopy()
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses = nil
	pod.Status.InitContainerStatuses = nil
	now, _ := k.Runtime.Containers(pod)
	slices.SortFunc(now, func(a, b Container) int { return cmp.Compare(a.Spec.Name, b.Spec.Name) })
	for i := range now {
		c := &now[i]
		list := &pod.Status.ContainerStatuses
		if podspec.IsSidecar(&c.Spec) {
			list = &pod.Status.InitContainerStatuses
		}
		*list = append(*list, corev1.ContainerStatus{
			Name:         c.Spec.Name,
			Image:        c.Spec.Image,
			ImageID:      "sha256:" + c.Spec.Image,
			ContainerID:  k.Runtime.Name + "://" + c.ID,
			RestartCount: c.Restarts,
			Ready:        true,
			Started:      new(true),
			State:        corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Time{Time: c.StartedAt}}},
		})
	}
	if !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady }) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
	}
	return k.Client.Status().Patch(ctx, pod, client.StrategicMergeFrom(base))
}
