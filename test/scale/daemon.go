package scale

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"

	daemon "github.com/flotilla-project/flotilla/daemon/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/agents"
)

// daemonParts are what is measured of the manager of the node agent. Agents are played: they need containers.
func (b *bench) daemonParts() []part {
	return []part{{name: "daemon", run: func(ctx context.Context) ([]Row, error) {
		images, err := b.nodeImages(ctx)
		if err != nil {
			return nil, err
		}
		requests, err := b.recreateRequests(ctx)
		return append([]Row{images}, requests...), err
	}}}
}

// firstNodeImages waits until each node has a NodeImage, which it gets some time after it has become ready.
func (b *bench) firstNodeImages(ctx context.Context) error {
	b.tell("waiting for the first NodeImages")
	return b.otherNodeImages(ctx, nil)
}

// otherNodeImages waits until each node has a NodeImage with none of these UIDs.
func (b *bench) otherNodeImages(ctx context.Context, old map[types.UID]bool) error {
	return awaitEvery(ctx, slow, "the NodeImages", func() (bool, error) {
		var list daemon.NodeImageList
		if err := b.client.List(ctx, &list); err != nil {
			return false, fmt.Errorf("list the NodeImages: %w", err)
		}
		return count(list.Items, func(i *daemon.NodeImage) bool { return !old[i.UID] }) == b.Nodes, nil
	})
}

// nodeImages measures how each node gets a NodeImage after the deletion of all of them.
func (b *bench) nodeImages(ctx context.Context) (Row, error) {
	if err := b.firstNodeImages(ctx); err != nil {
		return Row{}, err
	}
	old := map[types.UID]bool{}
	var list daemon.NodeImageList
	if err := b.client.List(ctx, &list); err != nil {
		return Row{}, fmt.Errorf("list the NodeImages: %w", err)
	}
	for i := range list.Items {
		old[list.Items[i].UID] = true
	}
	return b.cost(ctx, Row{Load: "NodeImages of nodes", Pods: b.Nodes, Of: "nodeimages"}, b.ofOperator("nodeimage"), func() (time.Time, error) {
		began := time.Now()
		if err := b.client.DeleteAllOf(ctx, &daemon.NodeImage{}); err != nil {
			return began, fmt.Errorf("delete the NodeImages: %w", err)
		}
		return began, b.otherNodeImages(ctx, old)
	})
}

// recreateRequests measures requests from their creation until they are gone, one for each pod: without and with a time in
// which the pod is not ready before.
func (b *bench) recreateRequests(ctx context.Context) ([]Row, error) {
	w := replicaSet()
	w.template().Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: contract.KruisePodReady}}
	pods, err := b.create(ctx, w)
	if err != nil {
		return nil, err
	}
	if err := b.resize(ctx, w, pods, b.Pods); err != nil {
		return nil, err
	}
	stop, err := agents.Play(ctx, b.client, &daemon.ContainerRecreateRequestList{}, agents.Recreate)
	if err != nil {
		return nil, err
	}
	defer stop()
	var rows []Row
	for _, way := range []struct {
		load  string
		grace *int64
	}{{"ContainerRecreateRequests", nil}, {"ContainerRecreateRequests, first not ready", new(int64)}} {
		row := Row{Load: way.load, Pods: b.Pods, Of: "containerrecreaterequests"}
		row, err := b.cost(ctx, row, b.ofOperator(""), func() (time.Time, error) {
			began := time.Now()
			if err := b.request(ctx, w.GetNamespace(), namesIn(pods, w.GetNamespace()), way.grace); err != nil {
				return began, err
			}
			return began, awaitEvery(ctx, slow, "the end of the requests", func() (bool, error) {
				var list daemon.ContainerRecreateRequestList
				err := b.client.List(ctx, &list, client.InNamespace(w.GetNamespace()))
				return err == nil && len(list.Items) == 0, err
			})
		})
		if err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
	return rows, b.resize(ctx, w, pods, 0)
}

// request creates a request for each pod.
func (b *bench) request(ctx context.Context, space string, pods []string, grace *int64) error {
	made := func(pod string) *daemon.ContainerRecreateRequest {
		r := &daemon.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: pod}}
		r.Spec.PodName = pod
		r.Spec.Containers = []daemon.ContainerToRecreate{{Name: template().Spec.Containers[0].Name}}
		r.Spec.Strategy = &daemon.RecreateStrategy{UnreadyGracePeriodSeconds: grace}
		r.Spec.TTLSecondsAfterFinished = new(int32)
		return r
	}
	return forEach(ctx, len(pods), func(ctx context.Context, i int) error { return b.accepted(ctx, made(pods[i])) })
}
