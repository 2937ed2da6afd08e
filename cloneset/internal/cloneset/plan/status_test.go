package plan

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/workloads/conditions"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

func (w *world) status(done action.Failures) v1beta1.CloneSetStatus {
	w.t.Helper()
	s := w.snapshot()
	return Status(s, Compute(s), done)
}

func TestStatusCountsActivePods(t *testing.T) {
	w := given(t, 5, partition("2")).
		old(2).updated(1).updated(1, unready).updated(1, gen.Lifecycle(contract.LifecyclePreparingNormal)).
		updated(1, gen.Terminating()).old(1, gen.Phase(corev1.PodFailed))
	s := w.status(action.Failures{})
	assert.EqualValues(t, 5, s.Replicas)
	assert.EqualValues(t, 4, s.ReadyReplicas, "the lifecycle state does not matter for readiness")
	assert.EqualValues(t, 3, s.AvailableReplicas)
	assert.EqualValues(t, 3, s.UpdatedReplicas)
	assert.EqualValues(t, 2, s.UpdatedReadyReplicas)
	assert.EqualValues(t, 1, s.UpdatedAvailableReplicas)
	assert.EqualValues(t, 3, s.ExpectedUpdatedReplicas)
	assert.EqualValues(t, 2, s.ObservedGeneration)
	assert.Equal(t, "app=web", s.LabelSelector)
	assert.Equal(t, w.revisions[0].Name, s.CurrentRevision)
	assert.Equal(t, w.revisions[1].Name, s.UpdateRevision)
	assert.EqualValues(t, 0, *s.CollisionCount)
}

func TestCurrentRevisionMovesWithoutWaitingForReadiness(t *testing.T) {
	w := given(t, 2).updated(2, unready)
	assert.Equal(t, w.revisions[1].Name, w.status(action.Failures{}).CurrentRevision)
	w = given(t, 2).updated(1)
	assert.Equal(t, w.revisions[0].Name, w.status(action.Failures{}).CurrentRevision, "a pod is missing")
}

// Whoever scales to zero in the middle of a canary and back gets the canary back, and no more of it.
func TestTheCurrentRevisionStaysForAsLongAsThePartitionKeepsPods(t *testing.T) {
	tests := []struct {
		name  string
		give  *world
		moves bool
	}{
		{"no pods, no partition", given(t, 0), true},
		{"no pods, partition 0%", given(t, 0, partition("0%")), true},
		{"no pods, a number", given(t, 0, partition("3")), false},
		{"no pods, a percentage", given(t, 0, partition("75%")), false},
		{"no pods, all are kept", given(t, 0, partition("100%")), false},
		{"the canary is the last pod", given(t, 1, partition("3")).updated(1), false},
		{"a percentage of one pod", given(t, 1, partition("99%")).updated(1), false},
		{"OnDelete has no partition", given(t, 0, partition("3"), updateType(v1beta1.OnDelete)), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.give.t = t
			want := tt.give.revisions[0].Name
			if tt.moves {
				want = tt.give.revisions[1].Name
			}
			assert.Equal(t, want, tt.give.status(action.Failures{}).CurrentRevision)
		})
	}
}

func TestProgressing(t *testing.T) {
	deadline := func(seconds int32) setOption {
		return func(s *v1beta1.CloneSet) { s.Spec.ProgressDeadlineSeconds = &seconds }
	}
	// before is the condition as the last pass left it, so many seconds ago, for the same revision.
	before := func(reason string, seconds int) setOption {
		return func(s *v1beta1.CloneSet) {
			at := metav1.NewTime(now.Add(-time.Duration(seconds) * time.Second))
			s.Status.Conditions = []workload.Condition{{
				Type: v1beta1.CloneSetProgressing, Status: corev1.ConditionTrue, Reason: reason, LastUpdateTime: at, LastTransitionTime: at,
			}}
			s.Status.UpdateRevision = "same"
			s.Status.UpdatedReplicas, s.Status.UpdatedReadyReplicas, s.Status.UpdatedAvailableReplicas = 3, 3, 3
		}
	}
	oneUpdated := func(s *v1beta1.CloneSet) {
		s.Status.UpdatedReplicas, s.Status.UpdatedReadyReplicas, s.Status.UpdatedAvailableReplicas = 1, 1, 1
	}
	tests := []struct {
		name   string
		give   *world
		want   string
		status corev1.ConditionStatus
	}{
		{"all available", given(t, 2, deadline(60)).updated(2), v1beta1.ReasonAvailable, corev1.ConditionTrue},
		{"paused", given(t, 2, deadline(60), paused()).old(2), v1beta1.ReasonPaused, corev1.ConditionTrue},
		{"paused but complete", given(t, 2, deadline(60), paused()).updated(2), v1beta1.ReasonAvailable, corev1.ConditionTrue},
		{"partition reached", given(t, 2, deadline(60), partition("1")).old(1).updated(1), v1beta1.ReasonPartitionAvailable, corev1.ConditionTrue},
		{"partition without pods", given(t, 0, deadline(60), partition("75%")), v1beta1.ReasonPartitionAvailable, corev1.ConditionTrue},
		{"partition without pods, for long", given(t, 0, deadline(60), partition("3"), before(v1beta1.ReasonUpdated, 60)), v1beta1.ReasonPartitionAvailable, corev1.ConditionTrue},
		{"a pod too many is no partition", given(t, 2, deadline(60)).updated(3), v1beta1.ReasonUpdated, corev1.ConditionTrue},
		{"nor is a pod that a hook keeps from going", given(t, 2, deadline(60)).updated(2).updated(1, gen.Lifecycle(contract.LifecyclePreparingDelete)), v1beta1.ReasonUpdated, corev1.ConditionTrue},
		{"nor is surge", given(t, 2, deadline(60), maxSurge("1")).old(1).updated(2), v1beta1.ReasonUpdated, corev1.ConditionTrue},
		{"partition reached, and a pod that it keeps is missing", given(t, 2, deadline(60), partition("1"), before(v1beta1.ReasonUpdated, 60)).updated(1), v1beta1.ReasonDeadlineExceeded, corev1.ConditionFalse},
		{"partition without pods that it keeps", given(t, 2, deadline(60), partition("100%")), v1beta1.ReasonUpdated, corev1.ConditionTrue},
		{"partition reached with a pod too many", given(t, 2, deadline(60), partition("1")).old(1).updated(2), v1beta1.ReasonPartitionAvailable, corev1.ConditionTrue},
		{"too many are past the deadline, too", given(t, 2, deadline(60), before(v1beta1.ReasonUpdated, 60)).updated(3), v1beta1.ReasonDeadlineExceeded, corev1.ConditionFalse},
		{"on the way", given(t, 2, deadline(60)).old(1).updated(1), v1beta1.ReasonUpdated, corev1.ConditionTrue},
		{"within the deadline", given(t, 2, deadline(60), before(v1beta1.ReasonUpdated, 59)).old(1).updated(1), v1beta1.ReasonUpdated, corev1.ConditionTrue},
		{"beyond it", given(t, 2, deadline(60), before(v1beta1.ReasonUpdated, 60)).old(1).updated(1), v1beta1.ReasonDeadlineExceeded, corev1.ConditionFalse},
		{"beyond it, and another pod is updated", given(t, 3, deadline(60), before(v1beta1.ReasonUpdated, 60), oneUpdated).old(1).updated(1).updated(1, unready), v1beta1.ReasonUpdated, corev1.ConditionTrue},
		{"exceeded is sticky", given(t, 3, deadline(60), before(v1beta1.ReasonDeadlineExceeded, 1)).old(1).updated(1), v1beta1.ReasonDeadlineExceeded, corev1.ConditionFalse},
		{"a long time of rest is not held against the next rollout", given(t, 2, deadline(60), before(v1beta1.ReasonAvailable, 9999)).old(2), v1beta1.ReasonUpdated, corev1.ConditionTrue},
		{"availability ends exceeded", given(t, 2, deadline(60), before(v1beta1.ReasonDeadlineExceeded, 9)).updated(2), v1beta1.ReasonAvailable, corev1.ConditionTrue},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.give.t = t
			if tt.give.set.Status.UpdateRevision == "same" {
				tt.give.set.Status.UpdateRevision = tt.give.revisions[1].Name
			}
			c := conditions.Get(tt.give.status(action.Failures{}).Conditions, v1beta1.CloneSetProgressing)
			require.NotNil(t, c)
			assert.Equal(t, tt.want, c.Reason)
			assert.Equal(t, tt.status, c.Status)
		})
	}

	t.Run("a new revision starts a new clock", func(t *testing.T) {
		w := given(t, 2, deadline(60), before(v1beta1.ReasonDeadlineExceeded, 9)).old(2)
		c := conditions.Get(w.status(action.Failures{}).Conditions, v1beta1.CloneSetProgressing)
		assert.Equal(t, v1beta1.ReasonUpdated, c.Reason)
		assert.Equal(t, now, c.LastUpdateTime.Time)
		w = given(t, 2, deadline(60), before(v1beta1.ReasonUpdated, 59)).old(2)
		c = conditions.Get(w.status(action.Failures{}).Conditions, v1beta1.CloneSetProgressing)
		assert.Equal(t, now, c.LastUpdateTime.Time)
	})
	t.Run("progress starts a new clock", func(t *testing.T) {
		sinceDone := func(w *world, done action.Failures) time.Duration {
			w.set.Status.UpdateRevision, w.set.Status.ObservedGeneration = w.revisions[1].Name, w.set.Generation
			return now.Sub(conditions.Get(w.status(done).Conditions, v1beta1.CloneSetProgressing).LastUpdateTime.Time)
		}
		since := func(w *world) time.Duration { return sinceDone(w, action.Failures{}) }
		slow := func() *world { return given(t, 5, deadline(60), before(v1beta1.ReasonUpdated, 40), oneUpdated).old(2) }
		assert.Equal(t, 40*time.Second, since(slow().updated(1)), "as before")
		assert.Equal(t, 40*time.Second, since(slow().updated(1, unready)), "one pod went out of service")
		assert.Zero(t, since(slow().updated(1).updated(1, unready)), "another one was updated")
		assert.Zero(t, since(slow().updated(2)), "another one is available")
		inVain := action.Failures{NoProgress: true}
		assert.Equal(t, 40*time.Second, sinceDone(slow().updated(1), inVain), "as before, while a write is refused")
		assert.Zero(t, sinceDone(slow().updated(2), inVain), "another one is available, while a write is refused")
	})
	t.Run("without a deadline there is no condition", func(t *testing.T) {
		for _, option := range []setOption{func(*v1beta1.CloneSet) {}, deadline(math.MaxInt32)} {
			w := given(t, 2, before(v1beta1.ReasonUpdated, 9), option).old(2)
			assert.Nil(t, conditions.Get(w.status(action.Failures{}).Conditions, v1beta1.CloneSetProgressing))
		}
	})
	t.Run("the pass after the deadline is asked for", func(t *testing.T) {
		w := given(t, 2, deadline(60), before(v1beta1.ReasonUpdated, 20)).updated(2, unready)
		w.set.Status.UpdateRevision = w.revisions[1].Name
		assert.Equal(t, 41*time.Second, w.plan().RequeueAfter)
	})
	t.Run("a set at rest is not planned again", func(t *testing.T) {
		for _, reason := range []string{v1beta1.ReasonAvailable, v1beta1.ReasonPaused, v1beta1.ReasonPartitionAvailable, v1beta1.ReasonDeadlineExceeded} {
			w := given(t, 2, deadline(60), before(reason, 20)).updated(2)
			w.set.Status.UpdateRevision = w.revisions[1].Name
			assert.Zero(t, w.plan().RequeueAfter, reason)
		}
	})
}

func TestFailuresComeAndGo(t *testing.T) {
	w := given(t, 2).updated(1)
	s := w.status(action.Failures{ScaleError: "create pod: quota exceeded"})
	c := conditions.Get(s.Conditions, v1beta1.CloneSetFailedScale)
	require.NotNil(t, c)
	assert.Equal(t, "create pod: quota exceeded", c.Message)
	assert.Equal(t, corev1.ConditionFalse, conditions.Get(s.Conditions, conditions.Ready).Status)
	assert.Equal(t, "FailedScale", conditions.Get(s.Conditions, conditions.Reconciling).Reason)
	w.set.Status = s
	w.updated(1)
	s = w.status(action.Failures{})
	assert.Nil(t, conditions.Get(s.Conditions, v1beta1.CloneSetFailedScale))
	assert.Nil(t, conditions.Get(s.Conditions, conditions.Reconciling))
	assert.Equal(t, corev1.ConditionTrue, conditions.Get(s.Conditions, conditions.Ready).Status)
}

func TestAWaitIsTold(t *testing.T) {
	w := given(t, 3, policy(v1beta1.InPlaceIfPossible)).old(2).updated(1, unready)
	c := conditions.Get(w.status(action.Failures{}).Conditions, conditions.Reconciling)
	require.NotNil(t, c)
	assert.Equal(t, "MaxUnavailable", c.Reason)
	assert.Equal(t, "2 of 3 pods available, 1 of 3 updated; MaxUnavailable web-old0: the update waits until other pods are available", c.Message)
}

// A paused set is as it should be, and says how many pods would be updated if it were not paused.
func TestAPausedSetCountsThePodsThatWait(t *testing.T) {
	seconds := int32(60)
	deadline := func(s *v1beta1.CloneSet) { s.Spec.ProgressDeadlineSeconds = &seconds }
	rows := map[string]struct {
		give            *world
		reason, message string
	}{
		"all wait":               {given(t, 3, paused(), deadline).old(3), conditions.ReasonPaused, "the update is paused; 3 pods are not updated"},
		"one waits":              {given(t, 3, paused(), deadline).old(1).updated(2), conditions.ReasonPaused, "the update is paused; 1 pod is not updated"},
		"but for the partition":  {given(t, 3, paused(), deadline, partition("2")).old(3), conditions.ReasonPaused, "the update is paused; 1 pod is not updated"},
		"none waits":             {given(t, 3, paused(), deadline).updated(3), "Available", "all pods are up to date and available"},
		"none but the partition": {given(t, 3, paused(), deadline, partition("2")).old(2).updated(1), "Available", "all pods are up to date and available"},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			list := r.give.status(action.Failures{}).Conditions
			ready := conditions.Get(list, conditions.Ready)
			assert.Equal(t, corev1.ConditionTrue, ready.Status)
			assert.Equal(t, r.reason, ready.Reason)
			assert.Equal(t, r.message, ready.Message)
			assert.Nil(t, conditions.Get(list, conditions.Reconciling))
			progressing := conditions.Get(list, v1beta1.CloneSetProgressing)
			assert.Equal(t, corev1.ConditionTrue, progressing.Status)
			if r.reason == conditions.ReasonPaused {
				assert.Equal(t, "CloneSetPaused: CloneSet is paused", progressing.Reason+": "+progressing.Message)
			}
		})
	}
	rolled := given(t, 3, paused(), partition("2")).old(1).updated(2)
	rolled.featureGates.PartitionRollback = true
	assert.Equal(t, "the update is paused; 1 pod is not updated", conditions.Get(rolled.status(action.Failures{}).Conditions, conditions.Ready).Message, "to go back")
}

func TestABadSpecStallsAndTouchesNothing(t *testing.T) {
	w := given(t, 3, partition("abc")).old(3)
	todo := w.plan()
	require.ErrorContains(t, todo.Err, "must be a number or a percentage such as 20%")
	assert.True(t, todo.Empty(), todo.String())
	c := conditions.Get(w.status(action.Failures{}).Conditions, conditions.Stalled)
	require.NotNil(t, c)
	assert.Equal(t, "InvalidSpec", c.Reason)
}

func TestMinReadySecondsAreTimedExactly(t *testing.T) {
	w := given(t, 1, minReady(10)).updated(1, gen.Ready(now.Add(-3*time.Second)))
	assert.Equal(t, 7*time.Second, w.plan().RequeueAfter)
	assert.EqualValues(t, 0, w.status(action.Failures{}).AvailableReplicas)
	w.set.Spec.Replicas = new(int32(1))
	w.pods = nil
	w.updated(1, gen.Ready(now.Add(-10*time.Second)))
	assert.EqualValues(t, 1, w.status(action.Failures{}).AvailableReplicas)
}

// Pods that get other resources serve all the while; the set is not as its spec wants it before they have them.
func TestNotReadyBeforeResourcesAreInForce(t *testing.T) {
	resized := []gen.PodOption{
		gen.Annotation(contract.InPlaceUpdateStateAnnotation, `{"revision":"web-x","lastContainerStatuses":null,"updateResources":true,`+
			`"containerBatchesRecord":[{"timestamp":null,"containers":["main"]}]}`),
		gen.Change(func(o *corev1.Pod) {
			o.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
		}),
		gen.Condition(corev1.PodResizePending, corev1.ConditionTrue, now),
		gen.Change(func(o *corev1.Pod) {
			o.Status.Conditions[len(o.Status.Conditions)-1].Reason = corev1.PodReasonInfeasible
		}),
	}
	w := given(t, 2).updated(1).updated(1, resized...)
	s := w.status(action.Failures{})
	assert.EqualValues(t, 2, s.AvailableReplicas)
	ready := conditions.Get(s.Conditions, "Ready")
	require.NotNil(t, ready)
	assert.Equal(t, corev1.ConditionFalse, ready.Status)
	assert.Equal(t, "ResizeInfeasible", ready.Reason)
	assert.Contains(t, ready.Message, "web-new1")
}

// Updates that go on while pods cannot be created leave the word about those.
func TestFailedScaleStaysUntilCreationIsTriedAgain(t *testing.T) {
	inPlace := policy(v1beta1.InPlaceIfPossible)
	updating := given(t, 5, inPlace, maxUnavailable("2"), failing).old(4)
	require.NotNil(t, conditions.Get(updating.status(action.Failures{}).Conditions, v1beta1.CloneSetFailedScale))
	trying := given(t, 5, inPlace, failing).updated(4)
	require.Nil(t, conditions.Get(trying.status(action.Failures{}).Conditions, v1beta1.CloneSetFailedScale), "it succeeded")
	whole := given(t, 4, inPlace, failing).updated(4)
	require.Nil(t, conditions.Get(whole.status(action.Failures{}).Conditions, v1beta1.CloneSetFailedScale), "nothing is missing")
	revised := given(t, 5, inPlace, maxUnavailable("2"), failing).old(4)
	revised.unsaved = true
	require.NotNil(t, conditions.Get(revised.status(action.Failures{}).Conditions, v1beta1.CloneSetFailedScale), "a revision is no pod")
}
