package scale

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/test/audit"
)

// bareReady is a way to get pods Ready by bare requests.
type bareReady struct {
	load   string
	pod    func(name string) *corev1.Pod
	patch  []byte // of pods/status; nil for none
	bound  bool   // the patch waits for the scheduler, as a controller does that writes with it the lifecycle state Normal
	update bool   // the pods are updated in place then
}

// toReady measures the time until pods are Ready that are created by bare requests. It is the lower bound for any
// controller on the same machine, with scheduler and nodes. The first pods are minimal; the others have the labels
// and readiness gates of a CloneSet's pods, whose conditions one PATCH a pod sets to True.
func (b *bench) toReady(ctx context.Context) ([]Row, error) {
	opening, err := json.Marshal(gatesSet(corev1.ConditionTrue, contract.LifecycleNormal))
	if err != nil {
		return nil, fmt.Errorf("encode the patch: %w", err)
	}
	var rows []Row
	for _, way := range []bareReady{
		{load: "bare POST pods, to Ready", pod: func(string) *corev1.Pod { return &corev1.Pod{} }},
		{load: "bare POST and PATCH pods/status, to Ready", pod: gatedPod, patch: opening},
		{load: "bare POST and, once bound, PATCH pods/status, to Ready", pod: gatedPod, patch: opening, bound: true, update: true},
	} {
		measured, err := b.readied(ctx, way)
		rows = append(rows, measured...)
		if err != nil {
			return rows, fmt.Errorf("%s: %w", way.load, err)
		}
	}
	return rows, nil
}

// gatedPod returns a pod with the labels and readiness gates of a CloneSet.
func gatedPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{
				contract.InstanceIDLabel:     name,
				contract.RevisionLabel:       "web-5f4d8",
				contract.TemplateHashLabel:   "5f4d8",
				contract.LifecycleStateLabel: contract.LifecyclePreparingNormal,
			},
			Annotations: map[string]string{contract.LifecycleTimestampAnnotation: time.RFC3339},
		},
		Spec: corev1.PodSpec{ReadinessGates: []corev1.PodReadinessGate{
			{ConditionType: contract.InPlaceUpdateReady}, {ConditionType: contract.KruisePodReady},
		}},
	}
}

// gatesSet returns the patch that sets the conditions of a gated pod's readiness gates, and its lifecycle state.
func gatesSet(status corev1.ConditionStatus, state string) map[string]any {
	now := metav1.Now()
	condition := func(kind corev1.PodConditionType, status corev1.ConditionStatus) corev1.PodCondition {
		return corev1.PodCondition{
			Type:               kind,
			Status:             status,
			LastTransitionTime: now,
		}
	}
	return map[string]any{
		"metadata": map[string]any{"labels": map[string]string{contract.LifecycleStateLabel: state}},
		"status": map[string]any{"conditions": []corev1.PodCondition{
			condition(contract.InPlaceUpdateReady, status), condition(contract.KruisePodReady, corev1.ConditionTrue),
		}},
	}
}

// readied creates pods in that way and waits until all are ready.
func (b *bench) readied(ctx context.Context, way bareReady) ([]Row, error) {
	b.tell("%s", way.load)
	space, err := b.namespace(ctx)
	if err != nil {
		return nil, err
	}
	store := b.watch(ctx, space)
	pods := b.kube.CoreV1().Pods(space)
	row := Row{Load: way.load, Pods: b.Pods}
	if err := b.audit.Skip(); err != nil {
		return nil, err
	}
	meter, err := startMeter(ctx, []process{b.controllerManager, b.apiServer, b.scheduler, b.database})
	if err != nil {
		return nil, err
	}
	store.begin(b.Pods)
	began := time.Now()
	if err := b.send(ctx, space, way, store); err != nil {
		return nil, err
	}
	row.LastWrite = time.Since(began).Seconds()
	all := load{done: isReady, pods: b.Pods}
	if err := until(ctx, "the pods", func() (bool, error) { return all.complete(store), nil }); err != nil {
		return nil, err
	}
	row.Done = time.Since(began).Seconds()
	row.observe(store, 0)
	if row.Costs, err = meter.cost(); err != nil {
		return nil, err
	}
	writes, err := b.audit.Read(audit.Request.IsWrite)
	if err != nil {
		return nil, err
	}
	row.account(writes, began, filepath.Base(os.Args[0])+"/")
	rows := []Row{row}
	if way.update {
		updated, err := b.bareInPlace(ctx, space, store)
		if err != nil {
			return rows, err
		}
		rows = append(rows, updated)
	}
	if err := pods.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return rows, fmt.Errorf("delete the pods: %w", err)
	}
	return rows, until(ctx, "the end of the pods", func() (bool, error) { return len(store.List()) == 0, nil })
}

// send creates the pods and sends the patches.
func (b *bench) send(ctx context.Context, space string, way bareReady, store *observed) error {
	pods := b.kube.CoreV1().Pods(space)
	open := func(ctx context.Context, i int) error {
		_, err := pods.Patch(ctx, podName(i), types.StrategicMergePatchType, way.patch, metav1.PatchOptions{}, "status")
		return err
	}
	requests, ctx := errgroup.WithContext(ctx)
	requests.Go(func() error {
		return forEach(ctx, b.Pods, func(ctx context.Context, i int) error {
			pod := way.pod(podName(i))
			pod.Name = podName(i)
			pod.Spec.Containers = podSpec(imageBefore).Containers
			if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil || way.patch == nil || way.bound {
				return err
			}
			return open(ctx, i)
		})
	})
	if way.bound {
		requests.Go(func() error {
			return forEach(ctx, b.Pods, func(ctx context.Context, i int) error {
				if err := store.until(ctx, space+"/"+podName(i), func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" }); err != nil {
					return err
				}
				return open(ctx, i)
			})
		})
	}
	return requests.Wait()
}
