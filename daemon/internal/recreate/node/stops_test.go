package node_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/plan/refusals"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/node"
)

func TestStopsOfOthers(t *testing.T) {
	compute := func(stop node.Stop, requests ...*v1beta1.ContainerRecreateRequest) node.Plan {
		return node.Compute(node.Snapshot{
			PodUID: podUID, Requests: requests, Containers: both(), Stops: map[string]node.Stop{id("a", 0): stop}, Now: at(10),
		})
	}
	over := request("over", ended)
	plan := compute(node.Stop{Request: "over", Stage: node.Told}, over, request("r"))
	assert.Nil(t, plan.Kill, "one stop at a time")
	assert.Empty(t, plan.Abort)
	plan = compute(node.Stop{Request: "over", Stage: node.Ended, At: at(9)}, over, request("r"))
	assert.Nil(t, plan.Kill, "it has just been stopped")
	plan = compute(node.Stop{Request: "over", Stage: node.Ended, Err: errors.New("x"), At: at(9)}, over, request("r"))
	assert.NotNil(t, plan.Kill)
	plan = compute(node.Stop{Request: "over", Stage: node.Ended, Err: errors.New("x"), At: at(9)}, over, request("r", recreating(marked("a", 0), pending("b"))))
	assert.NotNil(t, plan.Kill, "another request's failure is not ours")
}

// A stop outlasts the end of its request, not its deletion nor that of the pod.
func TestAStopThatHasBegun(t *testing.T) {
	over := func(state v1beta1.ContainerRecreateState) *v1beta1.ContainerRecreateRequest {
		return request("r", hook, recreating(state, pending("b")), ended)
	}
	going := func(r *v1beta1.ContainerRecreateRequest) { r.DeletionTimestamp = new(metav1.NewTime(at(1))) }
	gone := containers(running("a", 1, at(9)), running("b", 0, at(-50)))
	other := request("other")
	type list = []*v1beta1.ContainerRecreateRequest
	cases := []struct {
		name       string
		stage      node.Stage
		requests   list
		containers []node.Container
		podGone    bool
		asks       bool
		abort      bool
		written    bool // that the container is Recreating
		kill       bool
	}{
		{name: "its hook goes on past the end", stage: node.InHook, requests: list{over(hooked())}, asks: true},
		{name: "then it is carried through", stage: node.AfterHook, requests: list{over(hooked())}, asks: true, written: true, kill: true},
		{name: "beside a request that waits", stage: node.AfterHook, requests: list{other, over(hooked())}, asks: true, written: true, kill: true},
		{name: "also when the record's answer was lost", stage: node.AfterHook, requests: list{over(marked("a", 0))}, asks: true, written: true, kill: true},
		{name: "also when the container has ended by itself", stage: node.AfterHook, requests: list{over(hooked())}, containers: gone, asks: true, written: true},
		{name: "that is all then", stage: node.AfterHook, requests: list{over(marked("a", 0))}, containers: gone, asks: true, abort: true},
		{name: "a deleted request wants nothing", stage: node.InHook, abort: true},
		{name: "neither after the hook", stage: node.AfterHook, abort: true},
		{name: "nor while it is going", stage: node.AfterHook, requests: list{request("r", hook, recreating(hooked(), pending("b")), ended, going)}, abort: true},
		{name: "nor a pod that is gone", stage: node.InHook, requests: list{over(hooked())}, podGone: true, asks: true, abort: true},
		{name: "also after the hook", stage: node.AfterHook, requests: list{over(hooked())}, podGone: true, asks: true, abort: true},
		{name: "also when nobody has completed the request yet", stage: node.AfterHook, requests: list{request("r", hook, recreating(hooked(), pending("b")))}, podGone: true, asks: true, abort: true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := node.Snapshot{
				PodUID: podUID, Requests: c.requests, Containers: both(), PodGone: c.podGone,
				Stops: map[string]node.Stop{id("a", 0): {Request: "r", Stage: c.stage}}, Now: at(10),
			}
			if c.containers != nil {
				s.Containers = c.containers
			}
			assert.Equal(t, c.asks, node.NeedsPodGone(s))
			plan := node.Compute(s)
			assert.Equal(t, c.abort, len(plan.Abort) > 0)
			written := false
			for _, w := range plan.Writes {
				if w.Request.Name == "r" {
					written = true
					assert.Equal(t, map[string]any{"containerRecreateStates": []v1beta1.ContainerRecreateState{marked("a", 0), pending("b")}}, w.Status)
				}
			}
			assert.Equal(t, c.written, written)
			assert.Equal(t, c.kill, plan.Kill != nil)
			assert.Nil(t, plan.Hook)
		})
	}
}

// A grace of any length is one: what no duration can hold is as good as for ever.
func TestAGraceOfAnyLength(t *testing.T) {
	for _, seconds := range []int64{30, 10_000_000_000, math.MaxInt64} {
		r := request("r", hook, strategy(func(s *v1beta1.RecreateStrategy) { s.TerminationGracePeriodSeconds = &seconds }))
		p := node.Compute(node.Snapshot{PodUID: podUID, Requests: []*v1beta1.ContainerRecreateRequest{r}, Containers: both(), Now: at(10)})
		require.NotNil(t, p.Hook, "%d", seconds)
		assert.GreaterOrEqual(t, p.Hook.Grace, 30*time.Second, "%d", seconds)
	}
}

// A request whose first write has got no answer may have begun. It keeps its turn, though the cache still shows it as
// it was and another one, made in the same second, comes first by name.
func TestARequestThatMayHaveBegunKeepsItsTurn(t *testing.T) {
	s := node.Snapshot{PodUID: podUID, Requests: []*v1beta1.ContainerRecreateRequest{request("b"), request("a")}, Containers: both(), Now: at(10)}
	first := func() string { return node.Compute(s).Writes[0].Request.Name }
	assert.Equal(t, "a", first())
	assert.True(t, node.Compute(s).Writes[0].Begins())
	s.Begun = map[types.UID]bool{s.Requests[0].UID: true}
	assert.Equal(t, "b", first())
}

// A policy may refuse what is written to one request. The stop of another, which waits for its own mark only, goes on.
func TestARefusedWriteStopsItsOwnRequestOnly(t *testing.T) {
	over := request("over", older, hook, recreating(hooked()), ended)
	requests := []*v1beta1.ContainerRecreateRequest{over, request("turn", phase(v1beta1.RecreatePending)), request("later")}
	stops := map[string]node.Stop{id("a", 0): {Request: "over", Stage: node.AfterHook}}
	cases := []struct {
		name    string
		stops   map[string]node.Stop
		refused types.UID
		asks    string
		written bool
	}{
		{"one that waits", nil, "later", "turn", true},
		{"the one whose turn it is", nil, "turn", "turn", false},
		{"one whose turn it is, beside one that is carried through", stops, "turn", "over", true},
		{"one that is carried through", stops, "over", "over", false},
	}
	for _, c := range cases {
		for _, before := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, " ", before), func(t *testing.T) {
				pauses, key := &refusals.Tracker{}, memory.Key{NamespacedName: types.NamespacedName{Name: "pod"}, UID: podUID}
				pass := func(now time.Time) (plan node.Plan, done progress.Result) {
					plan = node.Compute(node.Snapshot{
						PodUID: podUID, Requests: requests, Containers: both(), Stops: c.stops, Now: now,
						Refusals: pauses.For(key, refusals.Observation{Now: now}),
					})
					answer := func(a *action.Action) progress.Outcome {
						if a.Object.GetUID() == c.refused {
							return progress.OutcomeOf(apierrors.NewTooManyRequests(`admission webhook "limit" denied the request: refused`, 0))
						}
						return progress.OutcomeOf(nil)
					}
					return plan, progress.Run(plan.Steps, progress.InTurn(answer, func() time.Time { return now }), progress.Options{Workload: key, Refusals: pauses})
				}
				plan, done := pass(at(10))
				if before { // the refused one is left alone for a while
					plan, done = pass(at(11))
				}
				require.NotNil(t, plan.Kill)
				assert.Equal(t, c.asks, plan.Kill.Request.Name)
				assert.Equal(t, c.written, plan.Written(plan.Kill, &done))
			})
		}
	}
}
