package scale

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/contract"
)

// bareInPlace changes the image of gated pods by bare requests, a tenth of them at a time: out of service, the image, and
// back into service once the container runs it. It is the lower bound for any controller: a pod's place is taken by the
// next one as soon as it is ready.
func (b *bench) bareInPlace(ctx context.Context, space string, pods *observed) (Row, error) {
	row := Row{Load: "bare PATCHes in place", Pods: b.Pods}
	b.tell("%s", row.Load)
	image := map[string]any{
		"metadata": map[string]any{"labels": map[string]string{contract.RevisionLabel: "web-7c9f6"}},
		"spec":     map[string]any{"containers": []map[string]string{{"name": "main", "image": imageAfter}}},
	}
	var bodies [3][]byte
	for i, patch := range []map[string]any{
		gatesSet(corev1.ConditionFalse, contract.LifecycleUpdating), image, gatesSet(corev1.ConditionTrue, contract.LifecycleNormal),
	} {
		var err error
		if bodies[i], err = json.Marshal(patch); err != nil {
			return row, fmt.Errorf("encode the patch: %w", err)
		}
	}
	meter, err := startMeter(ctx, []process{b.controllerManager, b.apiServer, b.scheduler, b.database})
	if err != nil {
		return row, err
	}
	pods.begin(b.Pods)
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(b.Pods / 10)
	for i := range b.Pods {
		group.Go(func() error { return b.updateBare(ctx, space, podName(i), pods, bodies) })
	}
	if err := group.Wait(); err != nil {
		return row, fmt.Errorf("%s: %w", row.Load, err)
	}
	row.Done = time.Since(began).Seconds()
	row.LastWrite = row.Done
	row.observe(pods, b.Pods/10)
	row.Costs, err = meter.cost()
	return row, err
}

// updateBare updates one pod in place and waits until it is ready.
func (b *bench) updateBare(ctx context.Context, space, name string, pods *observed, bodies [3][]byte) error {
	patch := func(body []byte, subresources ...string) error {
		_, err := b.kube.CoreV1().Pods(space).Patch(ctx, name, types.StrategicMergePatchType, body, metav1.PatchOptions{}, subresources...)
		return err
	}
	if err := patch(bodies[0], "status"); err != nil {
		return err
	}
	if err := patch(bodies[1]); err != nil {
		return err
	}
	if err := pods.until(ctx, space+"/"+name, runsImageAfter); err != nil {
		return err
	}
	if err := patch(bodies[2], "status"); err != nil {
		return err
	}
	return pods.until(ctx, space+"/"+name, isUpdated)
}

// runsImageAfter reports whether the container was started with the new image.
func runsImageAfter(pod *corev1.Pod) bool {
	reported := pod.Status.ContainerStatuses
	return pod.Spec.Containers[0].Image == imageAfter && len(reported) == 1 && reported[0].Image == imageAfter
}
