package plan

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/testing/docs"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	daemon "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// The page of the feature explains what users read of it.
func TestThePageNamesWhatUsersRead(t *testing.T) {
	docs.Feature(t, "sidecarterminator", "reference/events-of-jobs").Names(Reasons)
}

type option = gen.PodOption

// job returns a running pod with container main and restartPolicy Never.
func job(options ...option) *corev1.Pod {
	pod := gen.Pod("job", gen.OnNode(gen.Node), gen.Phase(corev1.PodRunning))
	pod.Spec.RestartPolicy, pod.Spec.TerminationGracePeriodSeconds = corev1.RestartPolicyNever, new(int64(20))
	pod.Spec.Containers[0].Name = "main"
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{running("main")}
	for _, o := range options {
		o(pod)
	}
	return pod
}

func running(name string) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name: name, ContainerID: "containerd://" + name + "-1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}
}

// container adds a running container with variables, given as NAME=value.
func container(name string, env ...string) option {
	return func(pod *corev1.Pod) {
		c := corev1.Container{Name: name, Image: name + ":1"}
		for _, e := range env {
			key, value, _ := strings.Cut(e, "=")
			c.Env = append(c.Env, corev1.EnvVar{Name: key, Value: value})
		}
		pod.Spec.Containers = append(pod.Spec.Containers, c)
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, running(name))
	}
}

const (
	stopped  = v1beta1.TerminateSidecarEnv + "=true"
	ignored  = v1beta1.IgnoreSidecarExitCodeEnv + "=true"
	replaced = v1beta1.TerminateSidecarImageEnv + "=quick:1"
)

// exits ends a container with a code.
func exits(name string, code int32) option {
	return func(pod *corev1.Pod) {
		statusOf(pod, name).State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}
	}
}

// waits has a container wait.
func waits(name string) option {
	return func(pod *corev1.Pod) {
		statusOf(pod, name).State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}
	}
}

func policy(p corev1.RestartPolicy) option {
	return func(pod *corev1.Pod) { pod.Spec.RestartPolicy = p }
}

func decided(reason string) option {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: contract.SidecarTerminated, Status: corev1.ConditionTrue, Reason: reason,
		})
	}
}

// changeMain changes the main container in the pod's spec.
func changeMain(with func(*corev1.Container)) option {
	return func(pod *corev1.Pod) {
		for i := range pod.Spec.Containers {
			if pod.Spec.Containers[i].Name == "main" {
				with(&pod.Spec.Containers[i])
			}
		}
	}
}

func given(pod *corev1.Pod, requests ...*daemon.ContainerRecreateRequest) Snapshot {
	return Snapshot{Pod: pod, Node: NodeReal, Served: true, Requests: requests, Now: gen.Epoch()}
}

// asked returns the actions of a plan, a line each.
func asked(p action.Plan) string {
	var lines []string
	for _, s := range p.Steps {
		for i := range s.Actions {
			a := &s.Actions[i]
			line := string(a.Verb)
			if r, ok := a.Object.(*daemon.ContainerRecreateRequest); ok {
				line += " " + strings.TrimPrefix(r.Name, "sidecar-termination-"+string(gen.UID("job")))
				for _, c := range r.Spec.Containers {
					line += " " + c.Name
				}
			}
			for _, patch := range a.Patches {
				body, _ := json.Marshal(patch.Body) // of strings
				line += " " + patch.Subresource + string(body)
			}
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

func TestWhoIsStoppedAndWhen(t *testing.T) {
	always, never := corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyNever
	rules := func(operator corev1.ContainerRestartRuleOnExitCodesOperator, codes ...int32) func(*corev1.Container) {
		return func(c *corev1.Container) {
			c.RestartPolicyRules = []corev1.ContainerRestartRule{{
				Action:    corev1.ContainerRestartRuleActionRestart,
				ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: operator, Values: codes},
			}}
		}
	}
	onFailure := policy(corev1.RestartPolicyOnFailure)
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"main runs":                {job(container("log", stopped)), ""},
		"main has ended":           {job(container("log", stopped), exits("main", 0)), "Create  log"},
		"main has failed":          {job(container("log", stopped), exits("main", 1)), "Create  log"},
		"one main of two runs":     {job(container("log", stopped), container("second"), exits("main", 0)), ""},
		"any letter case":          {job(container("log", v1beta1.TerminateSidecarEnv+"=TRUE"), exits("main", 0)), "Create  log"},
		"another value":            {job(container("log", v1beta1.TerminateSidecarEnv+"=yes"), exits("main", 0)), ""},
		"the last variable counts": {job(container("log", stopped, v1beta1.TerminateSidecarEnv+"=false"), exits("main", 0)), ""},
		"several":                  {job(container("log", stopped), container("mesh", stopped), exits("main", 0)), "Create  log mesh"},
		"one has ended":            {job(container("log", stopped), container("mesh", stopped), exits("main", 0), exits("log", 1)), "Create  mesh"},
		"all have ended":           {job(container("log", stopped), exits("main", 0), exits("log", 1)), ""},
		"no main": {job(container("log", stopped), func(pod *corev1.Pod) {
			pod.Spec.Containers, pod.Status.ContainerStatuses = pod.Spec.Containers[1:], pod.Status.ContainerStatuses[1:]
		}), ""},
		"restartPolicy Always":          {job(container("log", stopped), exits("main", 0), policy(corev1.RestartPolicyAlways)), ""},
		"Always, main's own is Never":   {job(container("log", stopped), exits("main", 0), policy(corev1.RestartPolicyAlways), changeMain(func(c *corev1.Container) { c.RestartPolicy = &never })), ""},
		"OnFailure, main has ended":     {job(container("log", stopped), exits("main", 0), onFailure), "Create  log"},
		"OnFailure, main has failed":    {job(container("log", stopped), exits("main", 1), onFailure), ""},
		"main's own policy is Always":   {job(container("log", stopped), exits("main", 0), changeMain(func(c *corev1.Container) { c.RestartPolicy = &always })), ""},
		"main's own policy is Never":    {job(container("log", stopped), exits("main", 1), onFailure, changeMain(func(c *corev1.Container) { c.RestartPolicy = &never })), "Create  log"},
		"main's rule restarts it":       {job(container("log", stopped), exits("main", 7), changeMain(rules(corev1.ContainerRestartRuleOnExitCodesOpIn, 7))), ""},
		"main's rule is for others":     {job(container("log", stopped), exits("main", 8), changeMain(rules(corev1.ContainerRestartRuleOnExitCodesOpIn, 7))), "Create  log"},
		"main's rule is for all others": {job(container("log", stopped), exits("main", 8), changeMain(rules(corev1.ContainerRestartRuleOnExitCodesOpNotIn, 7))), ""},
		"terminating":                   {job(container("log", stopped), exits("main", 0), func(pod *corev1.Pod) { pod.DeletionTimestamp = new(metav1.NewTime(gen.Epoch())) }), ""},
		"pending":                       {job(container("log", stopped), exits("main", 0), gen.Phase(corev1.PodPending)), ""},
		"over":                          {job(container("log", stopped), exits("main", 0), gen.Phase(corev1.PodFailed)), ""},
		"a status is missing":           {job(container("log", stopped), exits("main", 0), func(pod *corev1.Pod) { pod.Status.ContainerStatuses = pod.Status.ContainerStatuses[:1] }), ""},
		"one does not run yet":          {job(container("log", stopped), container("mesh", stopped), exits("main", 0), waits("mesh")), "Create  log"},
		"none runs yet":                 {job(container("log", stopped), exits("main", 0), waits("log")), ""},
		"for virtual nodes only":        {job(container("log", replaced), exits("main", 0)), ""},
		"native sidecars are left to kubelet": {job(exits("main", 0), container("log", stopped), func(pod *corev1.Pod) {
			pod.Spec.InitContainers = []corev1.Container{{Name: "native", RestartPolicy: &always, Env: []corev1.EnvVar{{Name: v1beta1.TerminateSidecarEnv, Value: "true"}}}}
		}), "Create  log"},
	} {
		t.Run(name, func(t *testing.T) {
			before := test.pod.DeepCopy()
			assert.Equal(t, test.want, asked(Compute(given(test.pod))))
			assert.Equal(t, before, test.pod)
		})
	}
}

func TestExitCodesThatAreIgnored(t *testing.T) {
	const patch = `PatchStatus status{"status":{"conditions":[{"lastTransitionTime":"2030-01-01T00:00:00Z","message":"Terminated by Sidecar Terminator",` +
		`"reason":"%","status":"True","type":"SidecarTerminated"}],"phase":"#"}}`
	decides := func(reason, phase string) string { return strings.NewReplacer("%", reason, "#", phase).Replace(patch) }
	succeeds, fails := decides(ConditionSucceeded, "Succeeded"), decides(ConditionFailed, "Failed")
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"main has ended":              {job(container("log", stopped, ignored), exits("main", 0)), succeeds},
		"main has failed":             {job(container("log", stopped, ignored), exits("main", 3)), fails},
		"one main of two has failed":  {job(container("log", stopped, ignored), container("second"), exits("main", 0), exits("second", 1)), fails},
		"alone the switch is nothing": {job(container("log", ignored), exits("main", 0)), ""},
		"others come first":           {job(container("log", stopped, ignored), container("mesh", stopped), exits("main", 0)), "Create  mesh"},
		"others have ended": {
			job(container("log", stopped, ignored), container("mesh", stopped), exits("main", 0), exits("mesh", 137)), succeeds,
		},
		"others are started again": {
			job(policy(corev1.RestartPolicyOnFailure), container("log", stopped, ignored), container("mesh", stopped), exits("main", 0), exits("mesh", 137)), "",
		},
		"decided":                   {job(container("log", stopped, ignored), exits("main", 0), decided(ConditionSucceeded), gen.Phase(corev1.PodSucceeded)), "Create -ignore log"},
		"decided, all have ended":   {job(container("log", stopped, ignored), exits("main", 0), exits("log", 1), decided(ConditionSucceeded), gen.Phase(corev1.PodSucceeded)), ""},
		"the phase was overwritten": {job(container("log", stopped, ignored), exits("main", 0), decided(ConditionSucceeded)), `PatchStatus status{"status":{"phase":"Succeeded"}}`},
		"what was decided stands": {
			job(container("log", stopped, ignored), exits("main", 137), exits("log", 0), decided(ConditionSucceeded)), `PatchStatus status{"status":{"phase":"Succeeded"}}`,
		},
		"decided by OpenKruise": {job(container("log", stopped, ignored), exits("main", 1), decided("")), `PatchStatus status{"status":{"phase":"Failed"}}`},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, test.want, asked(Compute(given(test.pod)))) })
	}
}

func TestVirtualNodes(t *testing.T) {
	onFailure := policy(corev1.RestartPolicyOnFailure)
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"main runs":                 {job(container("log", replaced)), ""},
		"main has ended":            {job(container("log", replaced), exits("main", 0)), `UpdateInPlace {"spec":{"containers":[{"image":"quick:1","name":"log"}]}}`},
		"it has that image":         {job(container("log", replaced), exits("main", 0), gen.Image("log", "quick:1")), ""},
		"both marks":                {job(container("log", replaced, stopped, ignored), exits("main", 0)), `UpdateInPlace {"spec":{"containers":[{"image":"quick:1","name":"log"}]}}`},
		"for real nodes only":       {job(container("log", stopped), exits("main", 0)), ""},
		"one has ended":             {job(container("log", replaced), container("mesh", replaced), exits("main", 0), exits("log", 1)), `UpdateInPlace {"spec":{"containers":[{"image":"quick:1","name":"mesh"}]}}`},
		"it is to be started again": {job(container("log", replaced), exits("main", 0), exits("log", 1), onFailure), `UpdateInPlace {"spec":{"containers":[{"image":"quick:1","name":"log"}]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := given(test.pod)
			s.Node, s.Served = NodeVirtual, false
			p := Compute(s)
			assert.Equal(t, test.want, asked(p))
			assert.Empty(t, p.Notices)
			for _, step := range p.Steps {
				assert.Contains(t, step.Actions[0].Event.Note, "trying to terminate sidecar [")
				assert.Contains(t, step.Actions[0].Event.Note, "] using in-place update")
			}
		})
	}
}

func TestAnUnknownNodeIsWaitedFor(t *testing.T) {
	s := given(job(container("log", stopped, replaced), exits("main", 0)))
	s.Node = NodeUnknown
	p := Compute(s)
	assert.Empty(t, p.Steps)
	require.Len(t, p.Waits, 1)
	assert.Equal(t, WaitNode, p.Waits[0].Reason)
	assert.Equal(t, nodeRecheck, p.RequeueAfter)
}

func TestWithoutRequestsThePodIsTold(t *testing.T) {
	s := given(job(container("log", stopped), container("mesh", stopped, ignored), exits("main", 0)))
	s.Served = false
	p := Compute(s)
	assert.Empty(t, p.Steps)
	require.Len(t, p.Notices, 1)
	assert.Equal(t, action.Notice{
		Type: corev1.EventTypeWarning, Reason: EventUnavailable,
		Note: "Sidecars log, mesh keep running: ContainerRecreateRequest is not installed in this cluster, or the operator has no permission to create it",
	}, p.Notices[0])

	s.Pod = job(container("log", replaced), exits("main", 0))
	assert.Empty(t, Compute(s).Notices, "nobody wants it stopped here")
}

func TestARequest(t *testing.T) {
	pod := job(container("log", stopped), container("mesh", stopped), exits("main", 0))
	p := Compute(given(pod))
	require.Equal(t, 1, p.Count(action.Create))
	a := p.Steps[0].Actions[0]
	r := a.Object.(*daemon.ContainerRecreateRequest)
	assert.Equal(t, "sidecar-termination-"+string(pod.UID), r.Name)
	assert.True(t, metav1.IsControlledBy(r, pod))
	assert.Nil(t, r.OwnerReferences[0].BlockOwnerDeletion, "that takes another right")
	assert.Equal(t, daemon.ContainerRecreateRequestSpec{
		PodName: pod.Name, Containers: []daemon.ContainerToRecreate{{Name: "log"}, {Name: "mesh"}},
		Strategy:              &daemon.RecreateStrategy{ForceRecreate: true, FailurePolicy: daemon.FailurePolicyIgnore},
		ActiveDeadlineSeconds: new(int64(640)), TTLSecondsAfterFinished: new(int32(600)),
	}, r.Spec)
	assert.Equal(t, "Main containers have ended: trying to terminate sidecar [log, mesh] using crr "+r.Name, a.Event.Note)

	pod.Spec.TerminationGracePeriodSeconds = new(int64(math.MaxInt64))
	p = Compute(given(pod))
	assert.EqualValues(t, 600+2*math.MaxInt32, *p.Steps[0].Actions[0].Object.(*daemon.ContainerRecreateRequest).Spec.ActiveDeadlineSeconds, "the server refuses a negative time")
}

// request returns the n-th request for the pod, made some time ago.
func request(n int, ago time.Duration, phase daemon.RecreatePhase, killed bool, names ...string) *daemon.ContainerRecreateRequest {
	p := &pass{Snapshot: given(job())}
	r := p.newRequest(RequestName(p.Pod, "", n), names, n == mostRequests)
	r.CreationTimestamp = metav1.NewTime(gen.Epoch().Add(-ago))
	r.Status.Phase = phase
	for _, name := range names {
		r.Status.ContainerRecreateStates = append(r.Status.ContainerRecreateStates, daemon.ContainerRecreateState{Name: name, IsKilled: killed})
	}
	return r
}

func TestRequestsThatFollow(t *testing.T) {
	type requests = []*daemon.ContainerRecreateRequest
	const active, over = daemon.RecreateRecreating, daemon.RecreateCompleted
	onFailure := policy(corev1.RestartPolicyOnFailure)
	one := func(options ...option) *corev1.Pod {
		return job(append([]option{onFailure, container("log", stopped), exits("main", 0)}, options...)...)
	}
	two := func(options ...option) *corev1.Pod {
		return one(append([]option{container("mesh", stopped)}, options...)...)
	}
	theirs := request(1, time.Hour, over, false, "log")
	theirs.Spec.TTLSecondsAfterFinished = nil
	going := request(1, time.Hour, over, true, "log")
	going.DeletionTimestamp = new(metav1.NewTime(gen.Epoch()))
	for name, test := range map[string]struct {
		pod    *corev1.Pod
		given  requests
		want   string
		told   string
		within time.Duration
	}{
		"it is carried out":                   {pod: one(), given: requests{request(1, time.Hour, active, true, "log")}},
		"nobody has begun":                    {pod: one(), given: requests{request(1, time.Hour, "", false, "log")}},
		"it runs again":                       {pod: one(), given: requests{request(1, time.Hour, over, true, "log")}, want: "Create -2 log"},
		"it is about to":                      {pod: one(waits("log")), given: requests{request(1, time.Hour, over, true, "log")}},
		"the pause is not over":               {pod: one(), given: requests{request(1, 4*time.Second, over, true, "log")}, within: 6 * time.Second},
		"the pauses grow":                     {pod: one(), given: requests{request(3, 4*time.Second, over, true, "log")}, within: 36 * time.Second},
		"five times are enough":               {pod: one(), given: requests{request(5, time.Hour, over, true, "log")}, told: EventGivenUp},
		"the agent is away":                   {pod: one(), given: requests{request(1, time.Hour, over, false, "log")}, told: EventUnavailable},
		"the agent was away the last time":    {pod: one(), given: requests{request(5, time.Hour, over, false, "log")}, told: EventUnavailable},
		"the first ones are gone":             {pod: one(), given: requests{request(4, time.Hour, over, true, "log")}, want: "Create -5 log"},
		"one of OpenKruise that stopped none": {pod: one(), given: requests{theirs}, want: "Create -2 log"},
		"it is being deleted":                 {pod: one(), given: requests{going}},
		"another runs at last": {
			pod: two(exits("log", 0)), given: requests{request(1, time.Second, active, true, "log")}, want: "Create -2 mesh",
		},
		"the one before is in its way": {
			pod: two(exits("log", 0)), given: requests{request(1, time.Hour, active, true, "log"), request(2, time.Hour, "", false, "mesh")}, want: "Delete  log",
		},
		"the one before is over": {
			pod: two(exits("log", 0)), given: requests{request(1, time.Hour, over, true, "log"), request(2, time.Hour, "", false, "mesh")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := Compute(given(test.pod, test.given...))
			assert.Equal(t, test.want, asked(p))
			assert.Equal(t, test.within, p.RequeueAfter)
			var told []string
			for _, n := range p.Notices {
				told = append(told, n.Reason)
			}
			assert.Equal(t, test.told, strings.Join(told, " "))
		})
	}
}

// The last request has no time to live: after it there is none, and its presence is what says so.
func TestTheLastRequestStays(t *testing.T) {
	assert.NotNil(t, request(4, 0, "", false, "log").Spec.TTLSecondsAfterFinished)
	assert.Nil(t, request(5, 0, "", false, "log").Spec.TTLSecondsAfterFinished)
}

// A pod that waits for a sidecar which cannot start says so: it would run for ever, and nobody would know why.
func TestASidecarThatDoesNotStartIsTold(t *testing.T) {
	because := func(reason string) option {
		return func(pod *corev1.Pod) {
			statusOf(pod, "log").State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
		}
	}
	for reason, told := range map[string]bool{"": false, "ContainerCreating": false, "ImagePullBackOff": true} {
		p := Compute(given(job(container("log", stopped), exits("main", 0), because(reason))))
		assert.Len(t, p.Waits, 1, reason)
		if !told {
			assert.Empty(t, p.Notices, reason)
			continue
		}
		require.Len(t, p.Notices, 1)
		assert.Equal(t, EventNeverStarted, p.Notices[0].Reason)
		assert.Equal(t, "Main containers have ended, but sidecar log has not started (ImagePullBackOff): it is stopped as soon as it starts", p.Notices[0].Note)
	}
}
