package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/eligibility"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

func TestWhatAJobWants(t *testing.T) {
	three := []Node{node("n1"), node("n2"), node("n3")}
	type list = []*corev1.Pod
	for name, c := range map[string]struct {
		job     *v1beta1.BroadcastJob
		nodes   []Node
		pods    list
		plan    string
		status  string
		notices []string
	}{
		"a pod for each node": {job(), three, nil,
			"Create on node n1; Create on node n2; Create on node n3; ", "running desired 3 active 0 succeeded 0 failed 0", nil},
		"one more beside one of two": {job(parallel("2")), three, list{pod("a", "n1", running)},
			"Create on node n2; ", "running desired 3 active 1 succeeded 0 failed 0", nil},
		"a percentage is rounded up": {job(parallel("40%")), three, nil,
			"Create on node n1; Create on node n2; ", "running desired 3 active 0 succeeded 0 failed 0", nil},
		"nothing with a parallelism of 0": {job(parallel("0")), three, nil,
			"", "running desired 3 active 0 succeeded 0 failed 0", nil},
		"nodes that do not fit are left out": {job(), []Node{node("n1"), cordoned("n2"), unfit("n3")}, nil,
			"Create on node n1; ", "running desired 1 active 0 succeeded 0 failed 0", nil},
		"a cordon leaves what runs": {job(), []Node{cordoned("n1")}, list{pod("a", "n1", running)},
			"", "running desired 1 active 1 succeeded 0 failed 0", nil},
		"a pod goes from a node that drives it away": {job(), []Node{unfit("n1"), node("n2")}, list{pod("a", "n1", running), pod("b", "n2", running)},
			"Delete a; ", "running desired 2 active 2 succeeded 0 failed 0", nil},
		"what has ended there counts": {job(), []Node{unfit("n1"), node("n2")}, list{pod("a", "n1", success), pod("b", "n2", running)},
			"", "running desired 2 active 1 succeeded 1 failed 0", nil},
		"a pod of a node that is gone goes": {job(), []Node{node("n2")}, list{pod("a", "n1"), pod("b", "n2", running)},
			"Delete a; ", "running desired 2 active 2 succeeded 0 failed 0", nil},
		"a pod that leaves a node that is gone holds nobody up": {job(), []Node{node("n2")}, list{pod("a", "n1", running, terminating), pod("b", "n2", success)},
			"", "completed desired 1 active 0 succeeded 1 failed 0", []string{EventComplete}},
		"a pod that leaves a node that takes no other holds nobody up": {job(), []Node{cordoned("n1"), node("n2")}, list{pod("a", "n1", running, terminating), pod("b", "n2", success)},
			"", "completed desired 1 active 0 succeeded 1 failed 0", []string{EventComplete}},
		"the place of a pod that leaves is kept": {job(parallel("1")), []Node{node("n1"), node("n2")}, list{pod("a", "n1", running, terminating)},
			"", "running desired 2 active 0 succeeded 0 failed 0", nil},
		"a pod that is deleted does not keep the job from its end": {job(), []Node{node("n1"), node("n2")}, list{pod("a", "n1", running, terminating), pod("b", "n2", success)},
			"", "completed desired 2 active 0 succeeded 1 failed 0", []string{EventComplete}},
		"it is made anew where others are to come": {job(never), []Node{node("n1"), node("n2")}, list{pod("a", "n1", running, terminating), pod("b", "n2", success)},
			"", "running desired 2 active 0 succeeded 1 failed 0", nil},
		"it is made anew while others run": {job(), []Node{node("n1"), node("n2")}, list{pod("b", "n2", running)},
			"Create on node n1; ", "running desired 2 active 1 succeeded 0 failed 0", nil},
		"a pod that leaves after its end counts": {job(), []Node{node("n1")}, list{pod("a", "n1", success, terminating)},
			"", "completed desired 1 active 0 succeeded 1 failed 0", []string{EventComplete}},
		"a pod that was deleted has not failed": {job(), []Node{node("n1"), node("n2")}, list{pod("a", "n1", exited(143, 0), deleted), pod("b", "n2", running)},
			"", "running desired 2 active 1 succeeded 0 failed 0", nil},
		"a pod that was deleted does not pause the job": {job(policy(v1beta1.FailPause)), []Node{node("n1"), node("n2")}, list{pod("a", "n1", exited(143, 0), deleted), pod("b", "n2", running)},
			"", "running desired 2 active 1 succeeded 0 failed 0", nil},
		"a pod that was deleted from a node that does not fit any more": {job(), []Node{unfit("n1"), node("n2")}, list{pod("a", "n1", exited(137, 0), deleted), pod("b", "n2", running)},
			"", "running desired 1 active 1 succeeded 0 failed 0", nil},
		"a pod that was deleted before it had a container": {job(), []Node{node("n1"), node("n2")}, list{pod("a", "n1", lost, deleted), pod("b", "n2", running)},
			"", "running desired 2 active 1 succeeded 0 failed 0", nil},
		"a pod that was deleted, in the last moment": {job(), []Node{node("n1"), node("n2")}, list{pod("a", "n1", exited(143, 5*time.Second), removed), pod("b", "n2", running)},
			"", "running desired 2 active 1 succeeded 0 failed 0", nil},
		"a pod that was deleted from a node with a clock that is behind": {job(), []Node{node("n1"), node("n2")},
			list{pod("a", "n1", exited(143, time.Hour), beside(137, time.Hour+20*time.Second), deleted), pod("b", "n2", running)},
			"", "running desired 2 active 1 succeeded 0 failed 0", nil},
		"a pod that was deleted, with a container that took long to end": {job(), []Node{node("n1"), node("n2")},
			list{pod("a", "n1", exited(137, 0), beside(143, time.Minute), deletedAgo(time.Minute)), pod("b", "n2", running)},
			"", "running desired 2 active 1 succeeded 0 failed 0", nil},
		"a pod that had failed before it was deleted": {job(), []Node{node("n1"), node("n2")}, list{pod("a", "n1", exited(143, 0), beside(1, time.Minute), deleted), pod("b", "n2", running)},
			"", "failed desired 2 active 0 succeeded 0 failed 2", []string{EventFailedPod}},
		"a pod that was evicted before it was deleted": {job(), []Node{node("n1")}, list{pod("a", "n1", lost, reason("Evicted"), deleted)},
			"", "failed desired 1 active 0 succeeded 0 failed 1", []string{EventFailedPod}},
		"a rule about pods that were deleted": {job(failing(onExit(batchv1.PodFailurePolicyActionFailJob, batchv1.PodFailurePolicyOnExitCodesOpIn, 143))), []Node{node("n1")},
			list{pod("a", "n1", exited(143, 0), deleted)},
			"", "failed desired 1 active 0 succeeded 0 failed 1", []string{EventPolicy}},
		"a pod that is being stopped has its place": {job(restarting, policy(v1beta1.FailContinue), parallel("1")), []Node{node("n1"), node("n2")}, list{pod("a", "n1", restarted(3))},
			"PatchSpec a; ", "running desired 2 active 0 succeeded 0 failed 1", nil},
		"until it has ended": {job(restarting, policy(v1beta1.FailContinue), parallel("1")), []Node{node("n1"), node("n2")}, list{pod("a", "n1", restarted(3), lost)},
			"Create on node n2; ", "running desired 2 active 0 succeeded 0 failed 1", nil},
		"a node that is registered anew is a new node": {job(never), []Node{young("n1")}, list{pod("a", "n1", success)},
			"Create on node n1; ", "running desired 2 active 0 succeeded 1 failed 0", nil},
		"a node that is registered again has its pod": {job(never), []Node{young("n1")}, list{pod("a", "n1", running)},
			"", "running desired 1 active 1 succeeded 0 failed 0", nil},
		"no nodes": {job(), nil, nil, "", "running desired 0 active 0 succeeded 0 failed 0", nil},
		"all have ended": {job(policy(v1beta1.FailContinue)), []Node{node("n1"), node("n2")}, list{pod("a", "n1", success), pod("b", "n2", failure)},
			"", "completed desired 2 active 0 succeeded 1 failed 1", []string{EventComplete}},
		"all have ended, and others may come": {job(never), []Node{node("n1")}, list{pod("a", "n1", success)},
			"", "running desired 1 active 0 succeeded 1 failed 0", nil},
		"a new node, and others may come": {job(never), []Node{node("n1"), node("n2")}, list{pod("a", "n1", success)},
			"Create on node n2; ", "running desired 2 active 0 succeeded 1 failed 0", nil},
		"a failed pod fails the job": {job(), three, list{pod("a", "n1", failure), pod("b", "n2", running)},
			"", "failed desired 3 active 0 succeeded 0 failed 2", []string{EventFailedPod}},
		"a failed pod fails a job that never completes": {job(never), three, list{pod("a", "n1", failure)},
			"", "failed desired 3 active 0 succeeded 0 failed 1", []string{EventFailedPod}},
		"a failed pod does not hold others up": {job(policy(v1beta1.FailContinue)), three, list{pod("a", "n1", failure), pod("b", "n2", success)},
			"Create on node n3; ", "running desired 3 active 0 succeeded 1 failed 1", nil},
		"a failed pod pauses the job": {job(policy(v1beta1.FailPause)), three, list{pod("a", "n1", failure), pod("b", "n2", success)},
			"PatchMetadata job; ", "running desired 3 active 0 succeeded 1 failed 1", nil},
		"a paused job makes nothing": {job(paused), three, list{pod("a", "n1", running)},
			"", "paused desired 3 active 1 succeeded 0 failed 0", nil},
		"a paused job does not fail": {job(paused, deadline(1)), three, list{pod("a", "n1", failure)},
			"", "paused desired 3 active 0 succeeded 0 failed 1", nil},
		"restarts within the limit": {job(restarting), []Node{node("n1")}, list{pod("a", "n1", restarted(2))},
			"", "running desired 1 active 1 succeeded 0 failed 0", nil},
		"restarts beyond the limit": {job(restarting), []Node{node("n1")}, list{pod("a", "n1", restarted(3))},
			"", "failed desired 1 active 0 succeeded 0 failed 1", []string{EventFailedPod}},
		"restarts beyond the limit hold nobody up": {job(restarting, policy(v1beta1.FailContinue)), []Node{node("n1"), node("n2")}, list{pod("a", "n1", restarted(3))},
			"PatchSpec a; Create on node n2; ", "running desired 2 active 0 succeeded 0 failed 1", nil},
		"two pods on a node": {job(), []Node{node("n1")}, list{pod("b", "n1"), pod("a", "n1", running)},
			"Delete b; ", "running desired 1 active 1 succeeded 0 failed 0", []string{EventDuplicate}},
		"one too many after a success": {job(never), []Node{node("n1")}, list{pod("b", "n1", running), pod("a", "n1", success)},
			"Delete b; ", "running desired 1 active 0 succeeded 1 failed 0", []string{EventDuplicate}},
		"the deadline has passed": {job(deadline(60)), three, list{pod("a", "n1", running), pod("b", "n2", success)},
			"", "failed desired 3 active 0 succeeded 1 failed 1", []string{EventDeadline}},
		"a job that is being deleted": {job(func(j *v1beta1.BroadcastJob) { j.DeletionTimestamp = new(at(0)) }), three, nil, "", "", nil},
		"a failed job clears up": {job(ending(v1beta1.PhaseFailed, v1beta1.JobFailed)), nil, list{pod("a", "n1", failure), pod("b", "n2", running), pod("c", "n3", running, terminating), pod("d", "n4")},
			"Delete b; Delete d; ", "", nil},
		"a completed job leaves nodes alone":  {job(ending(v1beta1.PhaseCompleted, v1beta1.JobComplete)), three, list{pod("a", "n1", success)}, "", "", nil},
		"a completed job stops what restarts": {job(restarting, ending(v1beta1.PhaseCompleted, v1beta1.JobComplete)), nil, list{pod("a", "n1", restarted(3))}, "PatchSpec a; ", "", nil},
		"a job whose time is over":            {job(ttl(10), ending(v1beta1.PhaseFailed, v1beta1.JobFailed)), nil, nil, "Delete job; ", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			todo := compute(t, given(c.job, c.nodes, c.pods...))
			assertPlan(t, &todo, c.plan, c.status, c.notices...)
		})
	}
}

func TestPodsAreMadeForTheirNodes(t *testing.T) {
	j := job(func(j *v1beta1.BroadcastJob) {
		j.Name = strings.Repeat("a", 56) + ".bcdefg"
		j.Spec.Template.Labels = map[string]string{"app": "x"}
		j.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "first", Image: "busybox:1"}}
	})
	todo := compute(t, given(j, []Node{node("n1")}))
	require.Len(t, todo.Steps, 1)
	o := todo.Steps[0].Actions[0].Object.(*corev1.Pod)
	assert.Regexp(t, "^a{56}-[a-z0-9]{5}$", o.Name)
	assert.Equal(t, "n1", eligibility.NodeOf(o))
	assert.Equal(t, map[string]string{"app": "x", "broadcastjob-name": j.Name, "broadcastjob-controller-uid": "job-uid"}, o.Labels)
	assert.Equal(t, corev1.PullAlways, o.Spec.Containers[0].ImagePullPolicy)
	assert.Equal(t, corev1.PullAlways, o.Spec.InitContainers[0].ImagePullPolicy)
	assert.Equal(t, types.UID("job-uid"), o.OwnerReferences[0].UID)
	assert.Equal(t, strings.Repeat("a", 56)+"-", o.GenerateName)
	assert.Equal(t, &action.Event{
		Succeeded: "SuccessfulCreate", Note: "Created pod: " + o.Name, Failed: "FailedCreate", FailedNote: "Error creating: ",
	}, todo.Steps[0].Actions[0].Event)
}

// Without the scheduler a pod names its node, and keeps the affinity that the user wrote.
func TestPodsAreBoundWithoutTheScheduler(t *testing.T) {
	j := job(func(j *v1beta1.BroadcastJob) { eligibility.Pin(&j.Spec.Template.Spec, "n1") })
	s := given(j, []Node{node("n1")})
	s.Bind = true
	todo := compute(t, s)
	require.Len(t, todo.Steps, 1)
	o := todo.Steps[0].Actions[0].Object.(*corev1.Pod)
	assert.Equal(t, "n1", o.Spec.NodeName)
	assert.Equal(t, j.Spec.Template.Spec.Affinity, o.Spec.Affinity)
}

func TestFailuresAreTold(t *testing.T) {
	evicted := func(o *corev1.Pod) {
		running(o)
		o.Status.Phase, o.Status.Reason, o.Status.Message = corev1.PodFailed, "Evicted", strings.Repeat("é", 200)
	}
	j := job(restarting, policy(v1beta1.FailContinue))
	todo := compute(t, given(j, []Node{node("n1"), node("n2"), node("n3"), node("n4")},
		pod("c", "n3", restarted(3)), pod("b", "n2", evicted), pod("a", "n1", failure)))
	assert.Equal(t, []v1beta1.PodFailure{
		{Node: "n1", Pod: "a", Reason: "Error", ExitCode: new(int32(3)), Message: "no disk"},
		{Node: "n2", Pod: "b", Reason: "Evicted", Message: strings.Repeat("é", 128)},
		{Node: "n3", Pod: "c", Reason: FailureRestarts, ExitCode: new(int32(7))},
	}, todo.status.Failures)

	todo = compute(t, given(job(), []Node{node("n1"), node("n2")}, pod("a", "n2", failure), pod("b", "n1", running)))
	assert.Equal(t, "failurePolicy FailFast: pod a on node n2 (exit code 3) failed", todo.status.Message)
	assert.Equal(t, todo.status.Message, todo.status.Conditions[0].Message)
	require.Len(t, todo.status.Failures, 2)
	assert.Equal(t, []string{"n2", "n1"}, []string{todo.status.Failures[0].Node, todo.status.Failures[1].Node})
	assert.Equal(t, FailureGivenUp, todo.status.Failures[1].Reason)
}

func TestFailuresAreBounded(t *testing.T) {
	var nodes []Node
	var pods []*corev1.Pod
	for i := range 3 * v1beta1.MaxFailures {
		name := "n" + string(rune('a'+i/26)) + string(rune('a'+i%26))
		nodes, pods = append(nodes, node(name)), append(pods, pod("p"+name, name, failure))
	}
	todo := compute(t, given(job(), nodes, pods...))
	assert.Len(t, todo.status.Failures, v1beta1.MaxFailures)
	assert.EqualValues(t, 3*v1beta1.MaxFailures, todo.status.Failed)
	assert.Less(t, len(todo.status.Message), 200)
}

// A success is run once, whatever becomes of its pod; a failure that somebody deletes is tried again.
func TestASuccessIsRemembered(t *testing.T) {
	nodes := []Node{node("n1"), node("n2"), node("n3")}
	j := job(policy(v1beta1.FailContinue))
	first := compute(t, given(j, nodes, pod("a", "n1", success), pod("b", "n2", failure), pod("c", "n3", running)))
	assert.Len(t, first.status.SucceededNodes, 8)
	j.Status = *first.status
	again := compute(t, given(j, nodes, pod("c", "n3", running)))
	assertPlan(t, &again, "Create on node n2; ", "running desired 3 active 1 succeeded 1 failed 0")
	assert.Equal(t, first.status.SucceededNodes, again.status.SucceededNodes)

	nodes[0].Node.UID = "another node of that name"
	renewed := compute(t, given(j, nodes, pod("c", "n3", running)))
	assertPlan(t, &renewed, "Create on node n1; Create on node n2; ", "running desired 3 active 1 succeeded 0 failed 0")
	assert.Empty(t, renewed.status.SucceededNodes)
}

func TestAPauseIsKeptUntilTheUserEndsIt(t *testing.T) {
	nodes := []Node{node("n1"), node("n2")}
	j := job(policy(v1beta1.FailPause))
	failed := pod("a", "n1", failure)
	todo := compute(t, given(j, nodes, failed))
	body := todo.Steps[0].Actions[0].Patches[0].Body
	assert.Equal(t, map[string]any{"paused": true}, body["spec"])

	j.Spec.Paused, j.Annotations = true, map[string]string{v1beta1.AcknowledgedFailuresAnnotation: "a"}
	todo = compute(t, given(j, nodes, failed))
	assertPlan(t, &todo, "", "paused desired 2 active 0 succeeded 0 failed 1", EventPaused)
	j.Status = *todo.status
	todo = compute(t, given(j, nodes, failed))
	assertPlan(t, &todo, "", "paused desired 2 active 0 succeeded 0 failed 1")
	assert.Equal(t, &j.Status, todo.status, "it says the same")

	j.Spec.Paused = false
	todo = compute(t, given(j, nodes, failed))
	assertPlan(t, &todo, "Create on node n2; ", "running desired 2 active 0 succeeded 0 failed 1", EventContinue)
	todo = compute(t, given(j, nodes, failed, pod("b", "n2", failure)))
	assertPlan(t, &todo, "PatchMetadata job; ", "paused desired 2 active 0 succeeded 0 failed 2")
}

func TestTheDeadlineStandsStillDuringAPause(t *testing.T) {
	nodes := []Node{node("n1")}
	o := pod("a", "n1", running)
	j := job(deadline(100)) // began 60 s ago
	assert.Equal(t, 40*time.Second, compute(t, given(j, nodes, o)).RequeueAfter)

	j.Spec.Paused = true
	s := given(j, nodes, o)
	first := compute(t, s)
	assert.Zero(t, first.RequeueAfter)
	j.Status = *first.status
	j.Spec.Paused = false
	s.Now = now.Add(time.Hour)
	resumed := compute(t, s)
	assert.Equal(t, 40*time.Second, resumed.RequeueAfter)
	assert.Nil(t, resumed.status.PausedSince)
	j.Status = *resumed.status
	s.Now = s.Now.Add(39 * time.Second)
	assert.Equal(t, time.Second, compute(t, s).RequeueAfter)
	s.Now = s.Now.Add(time.Second)
	assert.Equal(t, v1beta1.PhaseFailed, compute(t, s).status.Phase)
}

func TestAJobBeginsWithItsFirstPass(t *testing.T) {
	j := job(deadline(5))
	j.Status = v1beta1.BroadcastJobStatus{}
	todo := compute(t, given(j, nil))
	assert.Equal(t, now, todo.status.StartTime.Time)
	assert.Equal(t, 5*time.Second, todo.RequeueAfter)
	assert.Equal(t, MessageNoNodes, todo.status.Message)
	assert.EqualValues(t, 1, todo.status.ObservedGeneration)
}

func TestAnEndedJobIsDeletedInTime(t *testing.T) {
	assert.Equal(t, 5*time.Second, compute(t, given(job(ttl(15), ending(v1beta1.PhaseCompleted, v1beta1.JobComplete)), nil)).RequeueAfter)
	assert.Zero(t, compute(t, given(job(ending(v1beta1.PhaseCompleted, v1beta1.JobComplete)), nil)).RequeueAfter)
}

func TestAParallelismThatNobodyCanRead(t *testing.T) {
	j := job(parallel("many"))
	j.Generation = 2
	todo := compute(t, given(j, []Node{node("n1")}))
	require.ErrorContains(t, todo.Err, "read spec.parallelism")
	assert.True(t, todo.Empty())
	assert.Contains(t, todo.status.Message, "spec.parallelism")
	assert.Equal(t, []string{EventUnreadable}, reasonsOf(&todo))
}

func TestWhatAJobWaitsForIsSaid(t *testing.T) {
	nodes := []Node{node("n1"), node("n2")}
	for name, c := range map[string]struct {
		job  *v1beta1.BroadcastJob
		pods []*corev1.Pod
		want string
	}{
		"parallelism": {job(parallel("1")), []*corev1.Pod{pod("a", "n1", running)}, "1 nodes wait: parallelism allows 1 pods at a time"},
		"leaving":     {job(), []*corev1.Pod{pod("a", "n1", running, terminating), pod("b", "n2", running)}, "1 nodes wait for the end of terminating pods"},
		"new nodes":   {job(never), []*corev1.Pod{pod("a", "n1", success), pod("b", "n2", success)}, MessageServing},
		"nothing":     {job(), []*corev1.Pod{pod("a", "n1", running), pod("b", "n2", running)}, ""},
		"a pause":     {job(paused), nil, MessagePaused},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, compute(t, given(c.job, nodes, c.pods...)).status.Message) })
	}
	lowered := job(parallel("1"))
	lowered.Generation = 2
	todo := compute(t, given(lowered, nodes, pod("a", "n1", running), pod("b", "n2", running)))
	assert.Equal(t, []string{EventTooMany}, reasonsOf(&todo))
}

// An edit of a job that has ended changes nothing, and is seen.
func TestAnEditAfterTheEndIsSeen(t *testing.T) {
	j := job(ending(v1beta1.PhaseCompleted, v1beta1.JobComplete), func(j *v1beta1.BroadcastJob) { j.Generation = 2 })
	todo := compute(t, given(j, []Node{node("n1"), node("n2")}, pod("a", "n1", success)))
	assert.Empty(t, todo.Steps)
	want := j.Status.DeepCopy()
	want.ObservedGeneration = 2
	assert.Equal(t, want, todo.status)
	j.Status = *want
	seen := compute(t, given(j, []Node{node("n1")}))
	assert.Nil(t, seen.status)
	j.Status.ObservedGeneration = 0
	of := compute(t, given(j, []Node{node("n1")}))
	assert.Nil(t, of.status, "OpenKruise has told of no generation")
}

func TestALongDeadlineIsNone(t *testing.T) {
	todo := compute(t, given(job(deadline(10_000_000_000)), []Node{node("n1")}))
	assertPlan(t, &todo, "Create on node n1; ", "running desired 1 active 0 succeeded 0 failed 0")
}
