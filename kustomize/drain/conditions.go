package drain

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The reasons of the conditions of a node. Kubernetes names the first two in KEP-5683.
const (
	adminRequested = "AdminRequested"
	drainCompleted = "DrainCompleted"
	drainFailed    = "DrainFailed"
)

// stage is the state of a drain, as the conditions of its node show it.
type stage struct {
	inProgress, drained corev1.ConditionStatus
	reason, message     string
}

// begun is the stage of a drain that runs.
func begun(criteria string) stage {
	return stage{corev1.ConditionTrue, corev1.ConditionFalse, adminRequested, "flotilla drain evicts " + criteria}
}

// ended is the stage of a drain that has ended, with its error.
func ended(criteria string, err error) stage {
	if err != nil {
		return stage{corev1.ConditionFalse, corev1.ConditionFalse, drainFailed, "flotilla drain ended before it had evicted " + criteria}
	}
	return stage{corev1.ConditionFalse, corev1.ConditionTrue, drainCompleted, "flotilla drain has evicted " + criteria}
}

// conditionsOf returns the conditions DrainInProgress and Drained of a node at a stage. The time of the last transition stays with
// a status that stays.
func conditionsOf(before []corev1.NodeCondition, s stage, now metav1.Time) []corev1.NodeCondition {
	conditions := []corev1.NodeCondition{
		{Type: corev1.NodeDrainInProgress, Status: s.inProgress}, {Type: corev1.NodeDrained, Status: s.drained},
	}
	for i := range conditions {
		c := &conditions[i]
		c.Reason = s.reason
		c.Message = s.message
		c.LastHeartbeatTime = now
		c.LastTransitionTime = now
		at := slices.IndexFunc(before, func(b corev1.NodeCondition) bool { return b.Type == c.Type })
		if at >= 0 && before[at].Status == c.Status {
			c.LastTransitionTime = before[at].LastTransitionTime
		}
	}
	return conditions
}

// criteria names the pods that are to leave. They decide when a node is drained.
func (d *drain) criteria() string {
	if d.pods != nil && !d.pods.Empty() {
		return fmt.Sprintf("pods with labels %s, except for pods of DaemonSets", d.pods)
	}
	return "pods, except for pods of DaemonSets"
}

// observe writes the conditions of a node at a stage, and keeps other conditions. A failure does not end the drain, which writes
// no further conditions after a refusal.
func (d *drain) observe(ctx context.Context, node *corev1.Node, s stage) {
	if !d.reportConditions {
		return
	}
	conditions := conditionsOf(node.Status.Conditions, s, metav1.NewTime(d.clock.Now()))
	err := d.writeConditions(ctx, conditions)
	if err == nil {
		node.Status.Conditions = conditions
		return
	}
	d.reportConditions = !apierrors.IsForbidden(err)
	d.warn(fmt.Sprintf("conditions DrainInProgress and Drained of node %s were not written: %s", d.node, err))
}

func (d *drain) writeConditions(ctx context.Context, conditions []corev1.NodeCondition) error {
	// The list is merged by the types of its conditions.
	body, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": conditions}})
	if err != nil {
		return fmt.Errorf("encode the conditions: %w", err)
	}
	_, err = d.client.Core.CoreV1().Nodes().Patch(ctx, d.node, types.StrategicMergePatchType, body,
		metav1.PatchOptions{FieldManager: "flotilla", DryRun: d.asked()}, "status")
	return err
}

// observed empties the node. It writes the conditions of a drain before, and again afterwards, also after an interrupt.
func (d *drain) observed(ctx context.Context, node *corev1.Node, empty func(context.Context) error) error {
	d.observe(ctx, node, begun(d.criteria()))
	err := empty(ctx)
	if d.dryRun == dryRunNone {
		last, stop := context.WithTimeout(context.WithoutCancel(ctx), afterwards)
		defer stop()
		d.observe(last, node, ended(d.criteria(), err))
	}
	return err
}

// warn reports a failure that does not end the drain.
func (d *drain) warn(text string) {
	d.telling.Lock()
	defer d.telling.Unlock()
	fmt.Fprintf(d.streams.ErrOut, "Warning: %s\n", text)
	d.report.Warn(text)
}
