package node_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/node"
)

const podUID = types.UID("pod-1")

func at(seconds int) time.Time { return gen.Epoch().Add(time.Duration(seconds) * time.Second) }

// option changes a request under construction.
type option func(*v1beta1.ContainerRecreateRequest)

// request asks to recreate the first runs of containers a and b.
func request(name string, options ...option) *v1beta1.ContainerRecreateRequest {
	r := &v1beta1.ContainerRecreateRequest{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "default", UID: types.UID(name), ResourceVersion: "7", CreationTimestamp: metav1.NewTime(at(0)),
			Labels: map[string]string{v1beta1.PodUIDLabel: string(podUID)},
		},
		Spec: v1beta1.ContainerRecreateRequestSpec{
			PodName: "web", Containers: []v1beta1.ContainerToRecreate{toRecreate("a"), toRecreate("b")},
			Strategy: &v1beta1.RecreateStrategy{FailurePolicy: v1beta1.FailurePolicyFail},
		},
	}
	for _, o := range options {
		o(r)
	}
	return r
}

func toRecreate(name string) v1beta1.ContainerToRecreate {
	return v1beta1.ContainerToRecreate{Name: name, StatusContext: &v1beta1.ContainerStatusContext{ContainerID: id(name, 0)}}
}

func strategy(change func(*v1beta1.RecreateStrategy)) option {
	return func(r *v1beta1.ContainerRecreateRequest) { change(r.Spec.Strategy) }
}

func phase(p v1beta1.RecreatePhase) option {
	return func(r *v1beta1.ContainerRecreateRequest) { r.Status.Phase = p }
}

func older(r *v1beta1.ContainerRecreateRequest) { r.CreationTimestamp = metav1.NewTime(at(-10)) }

// recreating puts the request into phase Recreating with the states of its containers, written just now.
func recreating(states ...v1beta1.ContainerRecreateState) option {
	return func(r *v1beta1.ContainerRecreateRequest) {
		r.Status.Phase, r.Status.ContainerRecreateStates = v1beta1.RecreateRecreating, states
		r.Status.LastHeartbeatTime = new(metav1.NewTime(at(10)))
	}
}

// heard says when the agent last wrote.
func heard(seconds int) option {
	return func(r *v1beta1.ContainerRecreateRequest) {
		r.Status.LastHeartbeatTime = new(metav1.NewTime(at(seconds)))
	}
}

// ended is a request that the manager has completed.
func ended(r *v1beta1.ContainerRecreateRequest) { r.Status.Phase = v1beta1.RecreateCompleted }

func hook(r *v1beta1.ContainerRecreateRequest) {
	r.Spec.Containers[0].PreStop = &v1beta1.PreStopHandler{}
}

func seen(snapshot ...v1beta1.ContainerStatusSnapshot) option {
	return func(r *v1beta1.ContainerRecreateRequest) { r.Status.ContainerStatusSnapshot = snapshot }
}

// ready returns what the manager says of the second run of a container.
func ready(name string) v1beta1.ContainerStatusSnapshot {
	return v1beta1.ContainerStatusSnapshot{Name: name, Ready: true, RestartCount: 1, ContainerID: id(name, 1)}
}

func pending(name string) v1beta1.ContainerRecreateState {
	return v1beta1.ContainerRecreateState{Name: name, Phase: v1beta1.RecreatePending}
}

// marked returns a container of which the run is stopped, or was.
func marked(name string, run int32) v1beta1.ContainerRecreateState {
	return v1beta1.ContainerRecreateState{Name: name, Phase: v1beta1.RecreateRecreating, IsKilled: true, ContainerID: id(name, run)}
}

// hooked returns container a while the hook of its first run is under way.
func hooked() v1beta1.ContainerRecreateState {
	return v1beta1.ContainerRecreateState{Name: "a", Phase: v1beta1.RecreatePending, ContainerID: id("a", 0)}
}

// moved returns a container that restarts by itself.
func moved(name string) v1beta1.ContainerRecreateState {
	return v1beta1.ContainerRecreateState{Name: name, Phase: v1beta1.RecreateRecreating, IsKilled: true}
}

func done(name string) v1beta1.ContainerRecreateState {
	return v1beta1.ContainerRecreateState{Name: name, Phase: v1beta1.RecreateSucceeded, IsKilled: true}
}

// broken returns container a when it has failed.
func broken(message string, killed bool) v1beta1.ContainerRecreateState {
	return v1beta1.ContainerRecreateState{Name: "a", Phase: v1beta1.RecreateFailed, IsKilled: killed, Message: message}
}

func id(name string, run int32) string { return "containerd://" + name + "-" + string('0'+run) }

func running(name string, run int32, since time.Time) node.Container {
	return node.Container{Name: name, ID: id(name, run), Running: true, RestartCount: run, CreatedAt: since, StartedAt: since}
}

// exited returns container a after a run.
func exited(run int32, since time.Time) node.Container {
	return node.Container{Name: "a", ID: id("a", run), Exited: true, RestartCount: run, CreatedAt: at(-50), StartedAt: at(-50), FinishedAt: since}
}

func containers(list ...node.Container) []node.Container { return list }

// both returns a pod whose two containers run for the first time.
func both() []node.Container { return containers(running("a", 0, at(-50)), running("b", 0, at(-50))) }

func ordered(s *v1beta1.RecreateStrategy) { s.OrderedRecreate = true }
func force(s *v1beta1.RecreateStrategy)   { s.ForceRecreate = true }
func ignore(s *v1beta1.RecreateStrategy)  { s.FailurePolicy = v1beta1.FailurePolicyIgnore }
func grace10(s *v1beta1.RecreateStrategy) { s.UnreadyGracePeriodSeconds = new(int64(10)) }
func started5(s *v1beta1.RecreateStrategy) {
	s.MinStartedSeconds = 5
}

func inGrace(r *v1beta1.ContainerRecreateRequest) {
	// The time is that of another machine, far ahead.
	r.Status.Conditions = []metav1.Condition{{
		Type: v1beta1.PreRecreateGrace, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(at(300)),
	}}
}

func TestOneRequest(t *testing.T) {
	begun := func(end node.Stop) map[string]node.Stop {
		end.Request = "r"
		return map[string]node.Stop{id("a", 0): end}
	}
	type states = []v1beta1.ContainerRecreateState
	cases := []struct {
		name       string
		request    *v1beta1.ContainerRecreateRequest
		containers []node.Container
		stops      map[string]node.Stop
		graceSeen  map[types.UID]time.Time
		phase      v1beta1.RecreatePhase // written, empty for no write
		states     states
		hook, kill string
		abort      []string
		wake       time.Duration // 0 until the next sign of life
	}{
		{name: "the first container is marked and stopped", request: request("r"), containers: both(),
			phase: v1beta1.RecreateRecreating, states: states{marked("a", 0), pending("b")}, kill: id("a", 0)},
		{name: "nothing more while it is stopped", request: request("r", recreating(marked("a", 0), pending("b"))), containers: both(),
			stops: begun(node.Stop{Stage: node.Told})},
		{name: "a stop that another agent has marked is taken up", request: request("r", recreating(marked("a", 0), pending("b"))), containers: both(),
			phase: v1beta1.RecreateRecreating, states: states{marked("a", 0), pending("b")}, kill: id("a", 0)},
		{name: "a mark without a record means the run of the time of the request", request: request("r", recreating(moved("a"), pending("b"))), containers: both(),
			phase: v1beta1.RecreateRecreating, states: states{marked("a", 0), pending("b")}, kill: id("a", 0)},
		{name: "a mark that this view does not show is not repeated", request: request("r", recreating(pending("a"), pending("b"))), containers: both(),
			stops: begun(node.Stop{Stage: node.Told}), wake: time.Second},
		{name: "the next one as soon as it has stopped", request: request("r", recreating(marked("a", 0), pending("b"))),
			containers: containers(exited(0, at(9)), running("b", 0, at(-50))), stops: begun(node.Stop{Stage: node.Ended, At: at(9)}),
			phase: v1beta1.RecreateRecreating, states: states{marked("a", 0), marked("b", 0)}, kill: id("b", 0), wake: time.Second},
		{name: "in order the next one waits until it has succeeded", request: request("r", strategy(ordered), recreating(marked("a", 0), pending("b"))),
			containers: containers(running("a", 1, at(9)), running("b", 0, at(-50))), stops: begun(node.Stop{Stage: node.Ended, At: at(9)}), wake: time.Second},
		{name: "in order the next one follows", request: request("r", strategy(ordered), recreating(marked("a", 0), pending("b")), seen(ready("a"))),
			containers: containers(running("a", 1, at(9)), running("b", 0, at(-50))),
			phase:      v1beta1.RecreateRecreating, states: states{done("a"), marked("b", 0)}, kill: id("b", 0)},
		{name: "all have succeeded", request: request("r", recreating(done("a"), marked("b", 0)), seen(ready("a"), ready("b"))),
			containers: containers(running("a", 1, at(1)), running("b", 1, at(2))),
			phase:      v1beta1.RecreateCompleted, states: states{done("a"), done("b")}},
		{name: "ready is what the manager says of this very run", request: request("r", recreating(done("a"), marked("b", 0)), seen(ready("a"), ready("b"))),
			containers: containers(running("a", 1, at(1)), running("b", 2, at(9))), wake: time.Second},
		{name: "minStartedSeconds has not passed", request: request("r", strategy(started5), recreating(done("a"), marked("b", 0)), seen(ready("b"))),
			containers: containers(running("a", 1, at(1)), running("b", 1, at(7))), wake: 2*time.Second + time.Millisecond},
		{name: "minStartedSeconds has passed", request: request("r", strategy(started5), recreating(done("a"), marked("b", 0)), seen(ready("b"))),
			containers: containers(running("a", 1, at(1)), running("b", 1, at(4))), phase: v1beta1.RecreateCompleted, states: states{done("a"), done("b")}},
		{name: "a clock that was set back does not matter without minStartedSeconds", request: request("r", recreating(done("a"), marked("b", 0)), seen(ready("b"))),
			containers: containers(running("a", 1, at(1)), running("b", 1, at(300))), phase: v1beta1.RecreateCompleted, states: states{done("a"), done("b")}},
		{name: "of two runs the one with more restarts is the later one, though the clock was set back",
			request:    request("r", recreating(marked("a", 0), done("b")), seen(ready("a"))),
			containers: containers(running("a", 1, at(9)), node.Container{Name: "a", ID: id("a", 0), Exited: true, CreatedAt: at(300), FinishedAt: at(301)}, running("b", 1, at(0))),
			phase:      v1beta1.RecreateCompleted, states: states{done("a"), done("b")}},
		{name: "who restarted by itself is not stopped again", request: request("r"), containers: containers(running("a", 1, at(9)), running("b", 0, at(-50))),
			phase: v1beta1.RecreateRecreating, states: states{moved("a"), marked("b", 0)}, kill: id("b", 0), wake: time.Second},
		{name: "a restart in the second of the request is seen by its ID", request: request("r"), containers: containers(running("a", 1, at(0)), running("b", 1, at(-1))),
			phase: v1beta1.RecreateRecreating, states: states{moved("a"), moved("b")}, wake: 2500 * time.Millisecond},
		{name: "with force it is stopped once more", request: request("r", strategy(force)), containers: containers(running("a", 1, at(9)), running("b", 0, at(-50))),
			phase: v1beta1.RecreateRecreating, states: states{marked("a", 1), pending("b")}, kill: id("a", 1)},
		{name: "with force it is stopped only once more", request: request("r", strategy(force), recreating(marked("a", 1), pending("b"))),
			containers: containers(running("a", 2, at(9)), running("b", 0, at(-50))),
			phase:      v1beta1.RecreateRecreating, states: states{marked("a", 1), marked("b", 0)}, kill: id("b", 0), wake: time.Second},
		{name: "with force one that has just ended needs no stop", request: request("r", strategy(force)), containers: containers(exited(1, at(9)), running("b", 0, at(-50))),
			phase: v1beta1.RecreateRecreating, states: states{moved("a"), marked("b", 0)}, kill: id("b", 0), wake: time.Second},
		{name: "a container that is not there is waited for", request: request("r"), containers: containers(running("b", 0, at(-50))),
			phase: v1beta1.RecreateRecreating, states: states{{Name: "a", Phase: v1beta1.RecreatePending, Message: "not found container on Node"}, marked("b", 0)}, kill: id("b", 0), wake: time.Second},
		{name: "a stopped container that was removed comes back", request: request("r", recreating(marked("a", 0), marked("b", 0))), containers: containers(running("b", 0, at(-50))),
			stops: map[string]node.Stop{id("b", 0): {Request: "r", Stage: node.Told}}, wake: time.Second},
		{name: "a container that cannot be stopped fails the request", request: request("r", recreating(marked("a", 0), pending("b"))), containers: both(),
			stops: begun(node.Stop{Stage: node.Ended, Err: errors.New("no answer"), At: at(9)}),
			phase: v1beta1.RecreateCompleted, states: states{broken("kill container error: no answer", true), pending("b")}},
		{name: "or is ignored", request: request("r", strategy(ignore), recreating(marked("a", 0), pending("b"))), containers: both(),
			stops: begun(node.Stop{Stage: node.Ended, Err: errors.New("no answer"), At: at(9)}),
			phase: v1beta1.RecreateRecreating, states: states{broken("kill container error: no answer", true), marked("b", 0)}, kill: id("b", 0)},
		{name: "with Ignore the request completes with what failed", request: request("r", strategy(ignore), recreating(broken("x", true), marked("b", 0)), seen(ready("b"))),
			containers: containers(running("a", 0, at(-50)), running("b", 1, at(9))),
			phase:      v1beta1.RecreateCompleted, states: states{broken("x", true), done("b")}},
		{name: "a stop whose effect is not listed yet", request: request("r", recreating(marked("a", 0), pending("b"))), containers: both(),
			stops: begun(node.Stop{Stage: node.Ended, At: at(9)}), wake: time.Second},
		{name: "a stop without effect", request: request("r", recreating(marked("a", 0), pending("b"))), containers: both(),
			stops: begun(node.Stop{Stage: node.Ended, At: at(-1)}),
			phase: v1beta1.RecreateCompleted, states: states{broken("the container still runs after the runtime has stopped it", true), pending("b")}},
		{name: "a container without context fails", request: request("r", func(r *v1beta1.ContainerRecreateRequest) { r.Spec.Containers[0].StatusContext = nil }), containers: both(),
			phase: v1beta1.RecreateCompleted, states: states{broken("the request was not processed by the webhook (no statusContext): create it again", false), pending("b")}},
		{name: "nothing is stopped before the pod is out of service", request: request("r", strategy(grace10)), containers: both(),
			phase: v1beta1.RecreateRecreating, states: states{pending("a"), pending("b")}},
		{name: "the grace begins when this agent sees it", request: request("r", strategy(grace10), inGrace, recreating(pending("a"), pending("b"))), containers: both(),
			wake: 10 * time.Second},
		{name: "the rest of the grace", request: request("r", strategy(grace10), inGrace, recreating(pending("a"), pending("b"))), containers: both(),
			graceSeen: map[types.UID]time.Time{"r": at(7)}, wake: 7 * time.Second},
		{name: "the end of the grace", request: request("r", strategy(grace10), inGrace, recreating(pending("a"), pending("b"))), containers: both(),
			graceSeen: map[types.UID]time.Time{"r": at(0)}, phase: v1beta1.RecreateRecreating, states: states{marked("a", 0), pending("b")}, kill: id("a", 0)},
		{name: "who restarts in the grace is judged after it", request: request("r", strategy(grace10), strategy(force), inGrace, recreating(pending("a"), pending("b"))),
			containers: containers(exited(0, at(9)), running("b", 0, at(-50))), wake: 10 * time.Second},
		{name: "no second grace", request: request("r", strategy(grace10), inGrace, recreating(marked("a", 0), pending("b"))),
			containers: containers(exited(0, at(9)), running("b", 0, at(-50))),
			phase:      v1beta1.RecreateRecreating, states: states{marked("a", 0), marked("b", 0)}, kill: id("b", 0), wake: time.Second},
		{name: "one that never starts again is looked at less often", request: request("r", recreating(marked("a", 0), done("b"))),
			containers: containers(exited(0, at(-90)), running("b", 1, at(0))), wake: 10 * time.Second},
		{name: "one that is about to start is left alone", request: request("r", strategy(force)),
			containers: containers(node.Container{Name: "a", ID: id("a", 0)}, running("b", 0, at(-50))),
			phase:      v1beta1.RecreateRecreating, states: states{pending("a"), marked("b", 0)}, kill: id("b", 0), wake: time.Second},
		{name: "the hook comes first, and the container is Pending", request: request("r", hook), containers: both(),
			phase: v1beta1.RecreateRecreating, states: states{hooked(), pending("b")}, hook: id("a", 0)},
		{name: "without any grace there is no hook", request: request("r", hook, strategy(func(s *v1beta1.RecreateStrategy) { s.TerminationGracePeriodSeconds = new(int64(0)) })), containers: both(),
			phase: v1beta1.RecreateRecreating, states: states{marked("a", 0), pending("b")}, kill: id("a", 0)},
		{name: "nothing happens during the hook", request: request("r", hook, recreating(hooked(), pending("b"))), containers: both(),
			stops: begun(node.Stop{Stage: node.InHook})},
		{name: "but a sign of life", request: request("r", hook, recreating(hooked(), pending("b")), heard(-10)), containers: both(),
			stops: begun(node.Stop{Stage: node.InHook}), phase: v1beta1.RecreateRecreating, states: states{hooked(), pending("b")}},
		{name: "no sooner than it is due", request: request("r", hook, recreating(hooked(), pending("b")), heard(-9)), containers: both(),
			stops: begun(node.Stop{Stage: node.InHook}), wake: time.Second},
		{name: "and at once when the clock was set back", request: request("r", hook, recreating(hooked(), pending("b")), heard(11)), containers: both(),
			stops: begun(node.Stop{Stage: node.InHook}), phase: v1beta1.RecreateRecreating, states: states{hooked(), pending("b")}},
		{name: "after the hook it is marked and stopped", request: request("r", hook, recreating(hooked(), pending("b"))), containers: both(),
			stops: begun(node.Stop{Stage: node.AfterHook}), phase: v1beta1.RecreateRecreating, states: states{marked("a", 0), pending("b")}, kill: id("a", 0)},
		{name: "also when the mark has been written and its answer was lost", request: request("r", hook, recreating(marked("a", 0), pending("b"))), containers: both(),
			stops: begun(node.Stop{Stage: node.AfterHook}), phase: v1beta1.RecreateRecreating, states: states{marked("a", 0), pending("b")}, kill: id("a", 0)},
		{name: "a hook that an earlier agent has begun begins again", request: request("r", hook, recreating(hooked(), pending("b"))), containers: both(),
			phase: v1beta1.RecreateRecreating, states: states{hooked(), pending("b")}, hook: id("a", 0)},
		{name: "a hook that an earlier agent has ended does not", request: request("r", hook, recreating(marked("a", 0), pending("b"))), containers: both(),
			phase: v1beta1.RecreateRecreating, states: states{marked("a", 0), pending("b")}, kill: id("a", 0)},
		{name: "a container that ends in its hook is not stopped", request: request("r", hook, recreating(hooked(), pending("b"))),
			containers: containers(exited(0, at(9)), running("b", 0, at(-50))), stops: begun(node.Stop{Stage: node.AfterHook}),
			phase: v1beta1.RecreateRecreating, states: states{moved("a"), pending("b")}, wake: time.Second},
		{name: "its stop is given up once that is written", request: request("r", hook, recreating(moved("a"), pending("b"))),
			containers: containers(exited(0, at(9)), running("b", 0, at(-50))), stops: begun(node.Stop{Stage: node.InHook}), abort: []string{id("a", 0)},
			wake: time.Second},
		{name: "nor the next run of it, with force either", request: request("r", hook, strategy(force), recreating(hooked(), pending("b"))),
			containers: containers(running("a", 1, at(9)), running("b", 0, at(-50))),
			phase:      v1beta1.RecreateRecreating, states: states{moved("a"), marked("b", 0)}, kill: id("b", 0), wake: time.Second},
		{name: "a sign of life in the grace", request: request("r", strategy(grace10), recreating(pending("a"), pending("b")), heard(-10)), containers: both(),
			phase: v1beta1.RecreateRecreating, states: states{pending("a"), pending("b")}},
		{name: "a sign of life while a container does not come back", request: request("r", recreating(marked("a", 0), done("b")), heard(-10)),
			containers: containers(exited(0, at(-90)), running("b", 1, at(0))),
			phase:      v1beta1.RecreateRecreating, states: states{marked("a", 0), done("b")}, wake: 10 * time.Second},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := node.Snapshot{
				PodUID: podUID, Requests: []*v1beta1.ContainerRecreateRequest{c.request}, Containers: c.containers,
				Stops: c.stops, GraceSeen: c.graceSeen, Now: at(10),
			}
			before := c.request.DeepCopy()
			plan := node.Compute(s)
			assert.Equal(t, plan, node.Compute(s), "equal snapshots make equal plans")
			assert.Equal(t, before, c.request)
			if c.phase == "" {
				assert.Empty(t, plan.Writes)
			} else {
				require.Len(t, plan.Writes, 1)
				assert.Equal(t, c.phase, plan.Writes[0].Status["phase"])
				assert.Equal(t, c.states, plan.Writes[0].Status["containerRecreateStates"])
				over := c.phase == v1beta1.RecreateCompleted
				assert.Equal(t, over, plan.Writes[0].Status["completionTime"] != nil)
				assert.Equal(t, over, plan.Writes[0].Status["conditions"] != nil, "the conditions of the end come with it")
				assert.Equal(t, !over, plan.Writes[0].Status["lastHeartbeatTime"] == metav1.NewTime(at(10)), "a sign of life")
				write := plan.Steps[0].Actions[0]
				assert.Equal(t, []string{"r", "7"}, []string{string(write.Object.GetUID()), write.Object.GetResourceVersion()})
				assert.False(t, write.Patches[0].AnyVersion)
			}
			assert.Equal(t, c.hook, idOf(plan.Hook))
			assert.Equal(t, c.kill, idOf(plan.Kill))
			assert.Equal(t, c.abort, plan.Abort)
			if c.wake == 0 && c.phase != v1beta1.RecreateCompleted {
				c.wake = 20 * time.Second
			}
			assert.Equal(t, c.wake, plan.RequeueAfter)
		})
	}
}

func idOf(kill *node.Kill) string {
	if kill == nil {
		return ""
	}
	return kill.ContainerID
}

func TestTurns(t *testing.T) {
	name := func(plan node.Plan) string {
		if plan.Kill == nil {
			return ""
		}
		return plan.Kill.Request.Name
	}
	cases := []struct {
		name     string
		requests []*v1beta1.ContainerRecreateRequest
		first    string
		pending  []string
	}{
		{"the older one", []*v1beta1.ContainerRecreateRequest{request("new"), request("old", older)}, "old", []string{"new"}},
		{"who waits before who is new", []*v1beta1.ContainerRecreateRequest{request("new", older), request("waits", phase(v1beta1.RecreatePending))}, "waits", []string{"new"}},
		{"who has begun before who waits", []*v1beta1.ContainerRecreateRequest{request("waits", older, phase(v1beta1.RecreatePending)), request("begun", recreating())}, "begun", nil},
		{"nobody waits for who is done", []*v1beta1.ContainerRecreateRequest{request("done", older, phase(v1beta1.RecreateCompleted)), request("waits", phase(v1beta1.RecreatePending))}, "waits", nil},
		{"nor for who is deleted", []*v1beta1.ContainerRecreateRequest{
			request("going", recreating(), func(r *v1beta1.ContainerRecreateRequest) { r.DeletionTimestamp = new(metav1.NewTime(at(1))) }), request("new"),
		}, "new", nil},
		{"nor for who means another pod", []*v1beta1.ContainerRecreateRequest{
			request("other", recreating(), func(r *v1beta1.ContainerRecreateRequest) { r.Labels[v1beta1.PodUIDLabel] = "other" }), request("new"),
		}, "new", nil},
		{"a request without a pod means none", []*v1beta1.ContainerRecreateRequest{
			request("none", func(r *v1beta1.ContainerRecreateRequest) { r.Labels = nil }),
		}, "", nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			plan := node.Compute(node.Snapshot{PodUID: podUID, Requests: c.requests, Containers: both(), Now: at(10)})
			assert.Equal(t, c.first, name(plan))
			var pending []string
			for _, w := range plan.Writes {
				if w.Request.Name != c.first {
					assert.Equal(t, map[string]any{"phase": v1beta1.RecreatePending}, w.Status)
					pending = append(pending, w.Request.Name)
				}
			}
			assert.Equal(t, c.pending, pending)
		})
	}
	none := request("none", func(r *v1beta1.ContainerRecreateRequest) { r.Labels = nil })
	plan := node.Compute(node.Snapshot{Requests: []*v1beta1.ContainerRecreateRequest{none}, Containers: both(), Now: at(10)})
	assert.True(t, plan.Empty(), "no UID is no pod")
	plan.Plan = action.Plan{}
	assert.Empty(t, plan, "no UID is no pod")
}

func TestWhatIsStopped(t *testing.T) {
	preStop := &v1beta1.PreStopHandler{}
	r := request("r", strategy(func(s *v1beta1.RecreateStrategy) { s.TerminationGracePeriodSeconds = new(int64(3)) }))
	r.Spec.Containers[0].PreStop = preStop
	kill := node.Compute(node.Snapshot{PodUID: podUID, Requests: []*v1beta1.ContainerRecreateRequest{r}, Containers: both(), Now: at(10)}).Hook
	assert.Equal(t, &node.Kill{
		Request: r, Container: "a", ContainerID: id("a", 0), PreStop: preStop, Grace: 3 * time.Second,
		Message: "Stopping container a by ContainerRecreateRequest r",
	}, kill)
	r.Spec.Strategy = nil
	kill = node.Compute(node.Snapshot{PodUID: podUID, Requests: []*v1beta1.ContainerRecreateRequest{r}, Containers: both(), Now: at(10)}).Hook
	assert.Equal(t, 30*time.Second, kill.Grace)
}
