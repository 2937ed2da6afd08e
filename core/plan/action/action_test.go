package action

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPlanTellsWhatItWants(t *testing.T) {
	var p Plan
	assert.True(t, p.Empty())
	p.Add(Step{Name: "nothing"})
	assert.True(t, p.Empty(), "a step without actions is no step")

	named := metav1.ObjectMeta{Name: "web-1"}
	p.Add(Step{Name: "scale up", Actions: []Action{
		{Verb: Create, Object: &corev1.Pod{ObjectMeta: named}, Reason: "ScaleUp", Message: "1 of 3"},
		{Verb: Create, Object: &corev1.PersistentVolumeClaim{ObjectMeta: named}},
		{Verb: Delete, Object: &corev1.ConfigMap{ObjectMeta: named}},
	}})
	p.Add(Step{Name: "delete", More: true, Actions: []Action{{Verb: Delete, Object: &corev1.Pod{ObjectMeta: named}}}})
	p.Wait("MaxUnavailable", "web-0", "%d pods are not available", 1)
	p.Wait("Paused", "", "the rollout is paused")
	p.RequeueWithin(3 * time.Second)
	p.RequeueWithin(0)
	p.RequeueWithin(-time.Second)
	p.RequeueWithin(5 * time.Second)
	assert.Equal(t, `scale up:
  Create pod web-1 (ScaleUp): 1 of 3
  Create claim web-1
  Delete configmap web-1
delete:
  Delete pod web-1
  and more in the next pass
wait: MaxUnavailable web-0: 1 pods are not available
wait: Paused: the rollout is paused
wake after 3s
`, p.String())
	assert.Equal(t, 2, p.Count(Create))
	assert.Zero(t, p.Count(Adopt))
}

// What a status tells, too, is told again until that status is written.
func TestNoticesOfAStatusWaitForIt(t *testing.T) {
	p := Plan{Notices: []Notice{{Reason: "PodFailed"}, {Reason: "Blocked", WithStatus: true}}}
	assert.Equal(t, p.Notices[:1], p.NoticesToRecord(false))
	assert.Equal(t, p.Notices, p.NoticesToRecord(true))
}
