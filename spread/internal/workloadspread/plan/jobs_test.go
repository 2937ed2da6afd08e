package plan

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

func TestDeletablePodsOfJobs(t *testing.T) {
	in := func(phase corev1.PodPhase, terminating bool) *corev1.Pod {
		pod := gen.Pod("p")
		if pod.Status.Phase = phase; terminating {
			pod.DeletionTimestamp = new(epoch())
		}
		return pod
	}
	for name, c := range map[string]struct {
		spec   batchv1.JobSpec
		status batchv1.JobStatus
		pods   []*corev1.Pod
		want   int32
	}{
		"the default":       {want: 6},
		"none":              {spec: batchv1.JobSpec{BackoffLimit: new(int32(0))}},
		"some have failed":  {spec: batchv1.JobSpec{BackoffLimit: new(int32(4))}, status: batchv1.JobStatus{Failed: 3}, want: 1},
		"too many":          {spec: batchv1.JobSpec{BackoffLimit: new(int32(4))}, status: batchv1.JobStatus{Failed: 9}},
		"not counted yet":   {status: batchv1.JobStatus{Failed: 1, UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{Failed: []types.UID{"a", "b"}}}, want: 3},
		"failed, and seen":  {status: batchv1.JobStatus{Failed: 1}, pods: []*corev1.Pod{in(corev1.PodFailed, false)}, want: 5},
		"failed a moment":   {pods: []*corev1.Pod{in(corev1.PodFailed, false), in(corev1.PodFailed, true)}, want: 4},
		"about to go":       {pods: []*corev1.Pod{in(corev1.PodPending, true), in(corev1.PodSucceeded, true), in(corev1.PodRunning, false)}, want: 5},
		"a limit per index": {spec: batchv1.JobSpec{BackoffLimitPerIndex: new(int32(3))}},
	} {
		assert.Equal(t, c.want, Deletable(&batchv1.Job{Spec: c.spec, Status: c.status}, c.pods), name)
	}
}

// A Job that has no nodes in its first subset moves on as long as that does not end it.
func TestAJobIsNotEndedForWantOfNodes(t *testing.T) {
	s := snapshot(adaptive(given("a=9 b"), 30))
	for i := range 7 {
		s.Pods = append(s.Pods, waiting(fmt.Sprint("a-", i), member("a")))
	}
	s.Target.HasCosts, s.Target.Deletable = false, new(int32(6))
	assert.True(t, NeedsDeletable(s.Spread, s.Pods))
	s.Spread.Status = *compute(t, s).Status
	p := compute(t, s)
	require.Len(t, p.Steps, 1)
	assert.Len(t, p.Steps[0].Actions, 6)
	kept := meta.FindStatusCondition(p.Status.Conditions, v1beta1.RescheduleLimited)
	require.NotNil(t, kept)
	assert.Contains(t, kept.Message, "pod a-6 is unschedulable and stays")

	s.Target.Deletable = nil
	p = compute(t, s)
	assert.Len(t, p.Steps[0].Actions, 7, "other workloads have no such limit")
	assert.Nil(t, meta.FindStatusCondition(p.Status.Conditions, v1beta1.RescheduleLimited))

	s.Pods = s.Pods[:0]
	assert.False(t, NeedsDeletable(s.Spread, s.Pods))
	assert.False(t, NeedsDeletable(given("a=9 b"), []*corev1.Pod{waiting("a-0", member("a"))}), "nothing is deleted")
}
