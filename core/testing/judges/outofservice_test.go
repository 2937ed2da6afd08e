package judges_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/judges"
)

// leaving is a world with a pod that has been not ready for a few seconds of the 12 that its update to web-2 has planned.
func leaving(t *testing.T, seconds int64) *judges.World {
	t.Helper()
	w := judges.New(cluster.Options{Calm: true}, &unstructured.Unstructured{Object: body{
		"kind": "CloneSet", "metadata": body{"name": "web", "namespace": namespace, "uid": "set"},
		"spec": body{"updateStrategy": body{"rollingUpdate": body{"inPlaceUpdateStrategy": body{"gracePeriodSeconds": seconds}}}},
	}})
	w.CheckInPlace()
	o := bare("web-1")
	o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "CloneSet", Name: "web", UID: "set", Controller: new(true)}}
	o.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: contract.InPlaceUpdateReady}}
	create(t, w, o)
	for _, status := range []string{"True", "False"} {
		condition := body{"type": contract.InPlaceUpdateReady, "status": status, "lastTransitionTime": metav1.NewTime(w.Now()).ToUnstructured()}
		patch(t, w, action.Patch{Subresource: "status", Body: body{"status": body{"conditions": []any{condition}}}})
		w.Advance(5 * time.Second)
		require.Equal(t, status == "True", ready(latest(w, "web-1")))
	}
	patch(t, w, action.Patch{Body: body{"metadata": body{"annotations": body{
		contract.InPlaceUpdateGraceAnnotation: `{"revision":"web-2","graceSeconds":12}`,
	}}}})
	return w
}

// A pod whose template changes in its grace period follows the gracePeriodSeconds that the workload has then.
func TestTheGracePeriodIsThatOfTheUpdateThatStopsContainers(t *testing.T) {
	for name, c := range map[string]struct {
		revision string
		seconds  int64
		violated bool
	}{
		"the planned update":                        {"web-2", 0, true},
		"another update, with a grace period":       {"web-3", 12, true},
		"another update, without any grace period":  {"web-3", 0, false},
		"another update, with a short grace period": {"web-3", 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := leaving(t, c.seconds)
			stop := setImage("app:v2")
			stop.Body["metadata"] = body{"labels": body{contract.RevisionLabel: c.revision}}
			patch(t, w, stop)
			if !c.violated {
				assert.Empty(t, w.Violations())
				return
			}
			require.Len(t, w.Violations(), 1)
			assert.Contains(t, w.Violations()[0], "its grace period is 12s")
		})
	}
}

// A kubelet takes a Ready that somebody else has written for none of its own, and sends its last one once more. Whoever
// waits for its answer is not misled.
func TestReadyOfSomebodyElseIsOverwritten(t *testing.T) {
	condition := func(t, status string) body {
		return body{"type": t, "status": status, "reason": "ReadinessGatesNotReady", "message": "a readiness gate is not True"}
	}
	for _, alone := range []bool{true, false} {
		w := judges.New(cluster.Options{Calm: true})
		w.CheckInPlace()
		o := bare("web-1")
		o.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: contract.InPlaceUpdateReady}}
		create(t, w, o)
		patch(t, w, action.Patch{Subresource: "status", Body: body{"status": body{"conditions": []any{condition("InPlaceUpdateReady", "True")}}}})
		w.Advance(time.Minute)
		require.True(t, ready(latest(w, "web-1")))
		conditions := []any{condition("InPlaceUpdateReady", "False")}
		if !alone {
			conditions = append(conditions, condition("Ready", "False"))
		}
		patch(t, w, action.Patch{Subresource: "status", Body: body{"status": body{"conditions": conditions}}})
		w.Advance(time.Minute)
		assert.False(t, ready(latest(w, "web-1")))
		assert.Equal(t, alone, len(w.Violations()) == 0, "%v", w.Violations())
	}
}
