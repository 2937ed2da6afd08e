package recreate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/node"
)

// machine is a node with one pod: its runtime, its kubelet and its agent. Its clock is an hour ahead.
type machine struct {
	t   *testing.T
	c   client.Client
	pod *corev1.Pod

	mu    sync.Mutex
	runs  []node.Container
	kills []string

	stops map[string]node.Stop
	grace map[types.UID]time.Time
}

// givenNode runs a node for the pod until the end of the test.
func givenNode(t *testing.T, c client.Client, pod *corev1.Pod) *machine {
	t.Helper()
	m := &machine{t: t, c: c, pod: pod.DeepCopy(), stops: map[string]node.Stop{}, grace: map[types.UID]time.Time{}}
	for _, container := range pod.Spec.Containers {
		m.start(container.Name, 0)
	}
	require.NoError(t, m.report(t.Context()))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		rounds := time.NewTicker(20 * time.Millisecond)
		defer rounds.Stop()
		for {
			m.round(ctx)
			select {
			case <-ctx.Done():
				return
			case <-rounds.C:
			}
		}
	}()
	t.Cleanup(func() { stop(); <-done })
	return m
}

func (m *machine) now() time.Time { return time.Now().Add(time.Hour) }

func (m *machine) start(name string, count int32) {
	m.runs = append(m.runs, node.Container{
		Name: name, ID: fmt.Sprintf("containerd://%s-%d", name, count), Running: true, RestartCount: count, CreatedAt: m.now(), StartedAt: m.now(),
	})
}

// killed returns the runs that were stopped, in order.
func (m *machine) killed() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string{}, m.kills...)
}

// report writes the status of the pod as the kubelet does.
func (m *machine) report(ctx context.Context) error {
	pod := &corev1.Pod{}
	if err := m.c.Get(ctx, client.ObjectKeyFromObject(m.pod), pod); err != nil {
		return err
	}
	before := pod.DeepCopy()
	pod.Status.Phase = corev1.PodRunning
	latest := map[string]corev1.ContainerStatus{}
	for _, run := range m.runs {
		latest[run.Name] = corev1.ContainerStatus{
			Name: run.Name, ContainerID: run.ID, RestartCount: run.RestartCount, Ready: run.Running,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}
	}
	pod.Status.ContainerStatuses = nil
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, latest[c.Name])
	}
	return m.c.Status().Patch(ctx, pod, client.MergeFrom(before))
}

// round is one look of the agent.
func (m *machine) round(ctx context.Context) {
	list := &v1beta1.ContainerRecreateRequestList{}
	if m.c.List(ctx, list, client.InNamespace(m.pod.Namespace), client.MatchingLabels{v1beta1.ActiveLabel: "true"}) != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := node.Snapshot{PodUID: m.pod.UID, Containers: m.runs, Stops: m.stops, GraceSeen: m.grace, Now: m.now()}
	for i := range list.Items {
		r := &list.Items[i]
		s.Requests = append(s.Requests, r)
		if _, seen := m.grace[r.UID]; !seen && meta.IsStatusConditionTrue(r.Status.Conditions, v1beta1.PreRecreateGrace) {
			m.grace[r.UID] = m.now()
		}
	}
	plan := node.Compute(s)
	for _, write := range plan.Writes {
		if err := m.patch(ctx, write); err != nil {
			if ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				m.t.Errorf("write of the agent: %v", err)
			}
			return
		}
	}
	if plan.Kill != nil {
		m.stop(ctx, plan.Kill)
	}
}

func (m *machine) patch(ctx context.Context, write node.Write) error {
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": write.Request.UID, "resourceVersion": write.Request.ResourceVersion}, "status": write.Status,
	})
	if err != nil {
		return err
	}
	return m.c.Status().Patch(ctx, write.Request.DeepCopy(), client.RawPatch(types.MergePatchType, body))
}

// stop ends a run; the kubelet starts the next one.
func (m *machine) stop(ctx context.Context, kill *node.Kill) {
	m.kills = append(m.kills, kill.ContainerID)
	m.stops[kill.ContainerID] = node.Stop{Request: kill.Request.UID, Stage: node.Ended, At: m.now()}
	for i := range m.runs {
		if run := &m.runs[i]; run.ID == kill.ContainerID {
			run.Running, run.Exited, run.FinishedAt = false, true, m.now()
			m.start(run.Name, run.RestartCount+1)
		}
	}
	if err := m.report(ctx); err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) {
		m.t.Errorf("report: %v", err)
	}
}
