package drain

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake" //nolint:depguard // the stories are about refusals that come and go during a drain
	clienttesting "k8s.io/client-go/testing"

	"github.com/flotilla-project/flotilla/kustomize/cli"
)

func TestTheConditionsOfADrain(t *testing.T) {
	earlier, now := metav1.NewTime(time.Unix(1000, 0)), metav1.NewTime(time.Unix(2000, 0))
	const all = "pods, except for pods of DaemonSets"
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string, since metav1.Time) corev1.NodeCondition {
		return corev1.NodeCondition{
			Type: kind, Status: status, Reason: reason, Message: message, LastHeartbeatTime: now, LastTransitionTime: since,
		}
	}
	for name, test := range map[string]struct {
		before []corev1.NodeCondition
		stage  stage
		want   []corev1.NodeCondition
	}{
		"a drain that begins is in progress": {
			stage: begun(all),
			want: []corev1.NodeCondition{
				condition(corev1.NodeDrainInProgress, corev1.ConditionTrue, "AdminRequested", "flotilla drain evicts "+all, now),
				condition(corev1.NodeDrained, corev1.ConditionFalse, "AdminRequested", "flotilla drain evicts "+all, now),
			},
		},
		"a second drain leaves the first one's success behind": {
			before: []corev1.NodeCondition{
				{Type: corev1.NodeDrained, Status: corev1.ConditionTrue, LastTransitionTime: earlier},
				{Type: corev1.NodeDrainInProgress, Status: corev1.ConditionFalse, LastTransitionTime: earlier},
			},
			stage: begun(all),
			want: []corev1.NodeCondition{
				condition(corev1.NodeDrainInProgress, corev1.ConditionTrue, "AdminRequested", "flotilla drain evicts "+all, now),
				condition(corev1.NodeDrained, corev1.ConditionFalse, "AdminRequested", "flotilla drain evicts "+all, now),
			},
		},
		"a drain that has evicted all pods has drained the node": {
			before: []corev1.NodeCondition{{Type: corev1.NodeDrainInProgress, Status: corev1.ConditionTrue, LastTransitionTime: earlier}},
			stage:  ended(all, nil),
			want: []corev1.NodeCondition{
				condition(corev1.NodeDrainInProgress, corev1.ConditionFalse, "DrainCompleted", "flotilla drain has evicted "+all, now),
				condition(corev1.NodeDrained, corev1.ConditionTrue, "DrainCompleted", "flotilla drain has evicted "+all, now),
			},
		},
		"a drain that fails is no longer in progress, and its node was never drained": {
			before: []corev1.NodeCondition{
				{Type: corev1.NodeDrainInProgress, Status: corev1.ConditionTrue, LastTransitionTime: earlier},
				{Type: corev1.NodeDrained, Status: corev1.ConditionFalse, LastTransitionTime: earlier},
			},
			stage: ended(all, context.DeadlineExceeded),
			want: []corev1.NodeCondition{
				condition(corev1.NodeDrainInProgress, corev1.ConditionFalse, "DrainFailed", "flotilla drain ended before it had evicted "+all, now),
				condition(corev1.NodeDrained, corev1.ConditionFalse, "DrainFailed", "flotilla drain ended before it had evicted "+all, earlier),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, conditionsOf(test.before, test.stage, now))
		})
	}
}

// The criteria of a drain are the user's, and a condition tells them.
func TestConditionsNameTheSelectedPods(t *testing.T) {
	d := &drain{pods: labels.Everything()}
	assert.Equal(t, "pods, except for pods of DaemonSets", d.criteria())
	d.pods = labels.SelectorFromSet(labels.Set{"app": "a"})
	assert.Equal(t, "pods with labels app=a, except for pods of DaemonSets", d.criteria())
}

// A node whose conditions cannot be written is emptied all the same. After a refusal the drain asks no more; after a failure of a
// moment it does.
func TestAFailureToWriteConditionsIsAWarning(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "node-1", errors.New("no right"))
	for name, test := range map[string]struct {
		failure error
		writes  int
	}{
		"forbidden":   {failure: forbidden, writes: 1},
		"unavailable": {failure: apierrors.NewServiceUnavailable("starting"), writes: 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld("a")
			var lines bytes.Buffer
			var report cli.Report
			w.streams.ErrOut, w.report, w.reportConditions = &lines, &report, true
			writes := 0
			w.client.Core.(*fake.Clientset).PrependReactor("patch", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
				if action.GetSubresource() != "status" {
					return false, nil, nil
				}
				writes++
				return true, nil, test.failure
			})

			require.NoError(t, w.run(t.Context()), w.out.String())

			assert.Equal(t, []string{"a"}, w.evicted)
			assert.Equal(t, test.writes, writes)
			want := "conditions DrainInProgress and Drained of node node-1 were not written: " + test.failure.Error()
			assert.Equal(t, slices.Repeat([]string{want}, test.writes), report.Warnings)
			assert.Contains(t, lines.String(), "Warning: "+want+"\n")
		})
	}
}
