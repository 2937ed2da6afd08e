package simnodes

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

const (
	// SimulatedLabel stands with value "true" on every simulated node.
	SimulatedLabel = "simulated-node"

	leaseSeconds = 40
	// parallelRenewals is how many leases are renewed at once, so that a slow server makes no node late.
	parallelRenewals = 16
)

func (o *Options) nodeLabels(name string, i int) map[string]string {
	labels := map[string]string{
		corev1.LabelHostname:   name,
		corev1.LabelOSStable:   "linux",
		corev1.LabelArchStable: "amd64",
		SimulatedLabel:         "true",
	}
	if o.Labels != nil {
		maps.Copy(labels, o.Labels(i))
	}
	return labels
}

// register creates the nodes, or takes over those of an earlier simulation.
func (n *Nodes) register(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(n.options.Workers)
	for _, node := range n.nodes {
		group.Go(func() error {
			if err := n.registerNode(ctx, node); err != nil {
				return fmt.Errorf("register node %s: %w", node.name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

func (n *Nodes) registerNode(ctx context.Context, node *node) error {
	object := n.nodeObject(node)
	_, err := n.client.CoreV1().Nodes().Create(ctx, object, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		status, err := json.Marshal(map[string]any{"status": object.Status})
		if err != nil {
			return err
		}
		_, err = n.client.CoreV1().Nodes().Patch(ctx, node.name, types.StrategicMergePatchType, status, metav1.PatchOptions{}, "status")
		if err != nil {
			return err
		}
	case err != nil:
		return err
	}
	// Admission taints every new node as not ready; elsewhere the controller manager takes that
	// away again, here nobody might.
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"labels": node.labels},
		"spec":     map[string]any{"taints": n.options.Taints},
	})
	if err != nil {
		return err
	}
	_, err = n.client.CoreV1().Nodes().Patch(ctx, node.name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

func (n *Nodes) nodeObject(node *node) *corev1.Node {
	now := metav1.NewTime(n.options.Clock.Now())
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("1000"),
		corev1.ResourceMemory:           resource.MustParse("4Ti"),
		corev1.ResourceEphemeralStorage: resource.MustParse("4Ti"),
		corev1.ResourcePods:             *resource.NewQuantity(int64(n.options.PodsPerNode), resource.DecimalSI),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.name, Labels: node.labels},
		Spec:       corev1.NodeSpec{Taints: n.options.Taints, ProviderID: "simulated://" + node.name},
		Status: corev1.NodeStatus{
			Capacity:    capacity,
			Allocatable: capacity,
			Phase:       corev1.NodeRunning,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: node.ip},
				{Type: corev1.NodeHostName, Address: node.name},
			},
			Conditions: nodeConditions(now),
			NodeInfo: corev1.NodeSystemInfo{
				OperatingSystem:         "linux",
				Architecture:            "amd64",
				KernelVersion:           "simulated",
				OSImage:                 "simulated",
				ContainerRuntimeVersion: "containerd://2.0.0",
				KubeletVersion:          "v1.37.0",
			},
		},
	}
}

func nodeConditions(now metav1.Time) []corev1.NodeCondition {
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason string) corev1.NodeCondition {
		return corev1.NodeCondition{
			Type:               kind,
			Status:             status,
			Reason:             reason,
			LastHeartbeatTime:  now,
			LastTransitionTime: now,
		}
	}
	return []corev1.NodeCondition{
		condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady"),
		condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory"),
		condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure"),
		condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID"),
	}
}

// beat renews the leases, spread evenly over the period.
func (n *Nodes) beat(ctx context.Context) {
	if len(n.nodes) == 0 {
		return
	}
	ticker := n.options.Clock.NewTicker(max(n.options.LeasePeriod/time.Duration(len(n.nodes)), time.Millisecond))
	defer ticker.Stop()
	var renewals errgroup.Group
	renewals.SetLimit(parallelRenewals)
	defer func() { _ = renewals.Wait() }() // no renewal returns an error
	renew := func(node *node) {
		renewals.Go(func() error {
			n.renew(ctx, node)
			return nil
		})
	}
	for _, node := range n.nodes {
		renew(node)
	}
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			renew(n.nodes[i%len(n.nodes)])
		}
	}
}

func (n *Nodes) renew(ctx context.Context, node *node) {
	if n.isPaused(node) {
		return
	}
	leases := n.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	renewed := metav1.NewMicroTime(n.options.Clock.Now())
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"renewTime": renewed}})
	if err == nil {
		_, err = leases.Patch(ctx, node.name, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: node.name},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &node.name, RenewTime: &renewed,
				LeaseDurationSeconds: ptr.To[int32](leaseSeconds)},
		}, metav1.CreateOptions{})
	}
	if err != nil && ctx.Err() == nil {
		n.options.Log.Error(err, "Failed to renew lease", "node", node.name)
	}
}

func (n *Nodes) isPaused(node *node) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return node.paused
}
