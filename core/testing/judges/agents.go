package judges

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/pods/inplace/agentreport"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/nodes"
)

// agentJudge judges pods of nodes with agents.
type agentJudge struct {
	world  *World
	agents *nodes.Agents
	edited map[types.UID]bool // pods of which an actor other than the operator wrote the metadata last
	asked  restarts
}

// NodeAgents gives every node an agent, as nodes.World does. From then on a pod whose metadata the operator wrote last must
// not come back into service while a container runs with an outdated environment or is to be restarted, no container may be
// restarted twice for one change of the annotation that restarts it, and nothing is restarted together with a native
// sidecar before it.
func (w *World) NodeAgents() {
	a := &agentJudge{
		world:  w,
		edited: map[types.UID]bool{},
		asked:  newRestarts(w),
	}
	w.agents = a
	w.OnEvent(func(e cluster.Event) {
		pod, ok := e.Object.(*corev1.Pod)
		old, _ := e.Old.(*corev1.Pod)
		if ok && e.Type != cluster.Deleted && e.Actor != cluster.AgentActor {
			a.watch(e.Actor, old, pod)
		}
	})
	a.agents = w.World.NodeAgents()
	a.agents.OnRestart = a.asked.count
}

// Outdated lists the containers that agents should have stopped and have not. Nodes must have agents.
func (w *World) Outdated() []string { return w.agents.allOutdated() }

// watch checks pods that come back into service, and records who writes metadata.
func (a *agentJudge) watch(actor string, old, pod *corev1.Pod) {
	if old == nil {
		return
	}
	if a.metadataDiffers(old, pod) {
		a.edited[pod.UID] = actor != cluster.OperatorActor
	}
	back := nodes.InPlaceUpdateReady(old) == corev1.ConditionFalse && nodes.InPlaceUpdateReady(pod) == corev1.ConditionTrue
	if actor == cluster.OperatorActor {
		a.asked.watch(old, pod, back)
	}
	if actor == cluster.OperatorActor && back && !a.edited[pod.UID] {
		for _, name := range a.agents.Outdated(pod) {
			a.world.Violate("pod %s comes back into service, but container %s has not read its environment", pod.Name, name)
		}
	}
}

func (a *agentJudge) metadataDiffers(old, pod *corev1.Pod) bool {
	return slices.ContainsFunc(podspec.LongRunning(&pod.Spec), func(c *corev1.Container) bool {
		return agentreport.ExpectedEnvHash(c, old) != agentreport.ExpectedEnvHash(c, pod)
	})
}

// allOutdated lists the containers that run with another environment than the metadata of their pods gives, except in
// pods whose metadata an actor other than the operator wrote last, and in those that are ending.
func (a *agentJudge) allOutdated() []string {
	var all []string
	for _, pod := range a.world.Pods() {
		if a.edited[pod.UID] || !podstate.Of(pod, a.world.Now(), 0).Active {
			continue
		}
		for _, name := range a.agents.Outdated(pod) {
			all = append(all, "container "+name+" of pod "+pod.Name+" has not read its environment")
		}
	}
	return append(all, a.asked.left()...)
}
