package plan

import (
	"fmt"
	"math"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/eligibility"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/judges"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

// watch judges every write in the world. What concerns numbers of nodes is judged here, after every write of the
// operator; what a plan must never want is judged by planJudges, pass by pass. That no write changes nothing, and that a
// settled world stays settled, is demanded by the world itself.
func watch(w *simulate.World) {
	w.Limit("nodes out of service", outOfService, mostOutOfService)
	w.Limit("nodes whose pod is not ready", notReadyNodes, mostOutOfService)
	w.Limit("nodes with two pods", doubled, mostDoubled)
	w.CheckInPlace()
	w.CheckOwnership("set-uid")
	w.CheckCreations(newSet(), func(v *cluster.View) int { return mostDoubled(v) })
}

// seen is what a view shows of each node that exists and should run a pod.
type seen struct {
	available, ready bool // and not on its way out
	inService        bool
	active           int
}

// nodesIn are the nodes that should run a pod, with their pods.
func nodesIn(v *cluster.View) map[string]*seen {
	set := setIn(v)
	template := eligibility.Compile(&set.Spec.Template, eligibility.ForDaemons)
	nodes := map[string]*seen{}
	for _, n := range cluster.List[*corev1.Node](v) {
		if template.Of(n).ShouldRun {
			nodes[n.Name] = &seen{}
		}
	}
	for _, o := range v.Active("set-uid") {
		s := nodes[eligibility.NodeOf(o)]
		if s == nil {
			continue
		}
		state := podstate.Of(o, v.Now(), set.Spec.MinReadySeconds)
		s.active++
		s.inService = s.inService || state.Ready
		s.available = s.available || state.Available
		s.ready = s.ready || state.Ready && state.Lifecycle == contract.LifecycleNormal
	}
	return nodes
}

// outOfService counts the nodes without an available pod.
func outOfService(v *cluster.View) int {
	n := 0
	for _, s := range nodesIn(v) {
		if !s.available {
			n++
		}
	}
	return n
}

// notReadyNodes counts the nodes without a pod that is ready, whether or not for minReadySeconds.
func notReadyNodes(v *cluster.View) int {
	n := 0
	for _, s := range nodesIn(v) {
		if !s.ready {
			n++
		}
	}
	return n
}

func mostOutOfService(v *cluster.View) int {
	set := setIn(v)
	l, r := limitsOf(set, len(nodesIn(v)), len(nodesIn(v))), set.Spec.UpdateStrategy.RollingUpdate
	switch {
	case !l.readable, r != nil && r.Selector != nil, l.partition > 0: // what is out of the update's reach does not count
		return math.MaxInt
	case l.surge > 0:
		return 0
	}
	return max(l.unavailable, 1)
}

// doubled counts the nodes with a second pod beside one that is in service.
func doubled(v *cluster.View) int {
	n := 0
	for _, s := range nodesIn(v) {
		if s.active > 1 && s.inService {
			n++
		}
	}
	return n
}

func mostDoubled(v *cluster.View) int {
	l := limitsOf(setIn(v), len(nodesIn(v)), len(nodesIn(v)))
	if !l.readable {
		return math.MaxInt
	}
	return l.surge
}

// planJudges judge a plan for the snapshot.
func planJudges(s Snapshot, todo Plan) []judges.Judge {
	ofPlan := func(name string, judge func(Snapshot, Plan) []string) judges.Judge {
		return judges.Judge{Name: name, Judge: func([]action.Step) []string { return judge(s, todo) }}
	}
	return append(judges.CommonJudges(),
		ofPlan("pods are created for eligible nodes that need one", onlyNodesInNeedGetPods),
		ofPlan("the old pod stays until its successor is available", surgesAreSafe),
		ofPlan("maxUnavailable holds", budgetHolds),
		ofPlan("partition and selector hold", rangeHolds),
		ofPlan("a taint updates no other node", taintsUpdateNobody),
		ofPlan("paused changes no revision", pausedChangesNoRevision),
		ofPlan("nobody waits without a word", nobodyWaitsWithoutAWord),
		judges.NoBreakOfHooks(preDelete(s.Set.Spec.Lifecycle)),
		judges.NoLossOfRevisions(s.Chosen, s.Pods),
	)
}

func isPod(a action.Action) bool {
	_, ok := a.Object.(*corev1.Pod)
	return ok
}

// onlyNodesInNeedGetPods: a node gets one pod in a pass, if it exists and should run one; and beside another pod that is
// not going only in a surge.
func onlyNodesInNeedGetPods(s Snapshot, todo Plan) []string {
	running := map[string]bool{}
	for _, o := range s.Pods {
		if o.DeletionTimestamp == nil && o.Labels[contract.LifecycleStateLabel] != contract.LifecyclePreparingDelete {
			running[eligibility.NodeOf(o)] = true
		}
	}
	var wrong []string
	for a := range judges.Actions(todo.Steps, "") {
		if !isPod(a) || a.Verb != action.Create {
			continue
		}
		name := eligibility.NodeOf(a.Object.(*corev1.Pod))
		i := slices.IndexFunc(s.Nodes, func(n Node) bool { return n.Name == name })
		if i < 0 || !s.Nodes[i].ShouldRun || running[name] && !surges(s.Set) {
			wrong = append(wrong, a.String())
		}
		if !surges(s.Set) {
			running[name] = true
		}
	}
	return wrong
}

// taintsUpdateNobody: nodes that should run no pod any more, and have one, widen no update: without their taints, it
// would reach the same nodes.
func taintsUpdateNobody(s Snapshot, _ Plan) []string {
	if s.FeatureGates.PruneIneligibleNodes { // they take no part, and the share is that of fewer nodes
		return nil
	}
	before := s
	before.Nodes = slices.Clone(s.Nodes)
	p := newPass(s)
	for i := range before.Nodes {
		if n := &before.Nodes[i]; n.ShouldContinue && slices.ContainsFunc(p.places, func(l place) bool { return l.name == n.Name && l.hasPod() }) {
			n.ShouldRun = true
		}
	}
	reached := func(p *pass) (names []string) {
		for _, l := range p.inRange {
			names = append(names, l.name)
		}
		return names
	}
	if without, with := reached(newPass(before)), reached(p); !slices.Equal(without, with) {
		return []string{fmt.Sprintf("the update reaches %v, and without the taints %v", with, without)}
	}
	return nil
}

func pausedChangesNoRevision(s Snapshot, todo Plan) []string {
	if !paused(s.Set) {
		return nil
	}
	var wrong []string
	for a := range judges.Actions(todo.Steps, "") {
		if _, changes := judges.LabelIn(a, contract.RevisionLabel); changes && a.Reason == "Update" || a.Reason == "Recreate" {
			wrong = append(wrong, a.String())
		}
	}
	for _, former := range surged(s, todo) {
		wrong = append(wrong, "a successor of "+former.Name)
	}
	return wrong
}

// nobodyWaitsWithoutAWord: every node in need and every broken pod that the update reaches gets its action, or the plan
// says for what it waits or when it looks again.
func nobodyWaitsWithoutAWord(s Snapshot, todo Plan) []string {
	if todo.Err != nil || s.Set.DeletionTimestamp != nil || len(todo.Waits) > 0 || todo.RequeueAfter > 0 {
		return nil
	}
	if slices.ContainsFunc(todo.Steps, func(s action.Step) bool { return s.More }) {
		return nil
	}
	acted := map[string]bool{}
	for a := range judges.Actions(todo.Steps, "") {
		acted[a.Object.GetName()] = true
		if o, ok := a.Object.(*corev1.Pod); ok {
			acted["on "+eligibility.NodeOf(o)] = true
		}
	}
	var wrong []string
	p := newPass(s)
	for i := range p.places {
		l := &p.places[i]
		switch {
		case acted["on "+l.name]:
		case (p.needsPod(l) || surges(s.Set) && p.needsSuccessor(l)) && s.Set.Spec.ScaleStrategy == nil:
			wrong = append(wrong, "nothing creates a pod on "+l.name)
		case p.isRolling() && !l.isUp() && p.replaceable(l) != nil && !surges(s.Set):
			wrong = append(wrong, "nothing updates "+l.name)
		}
	}
	return wrong
}

// unarrived says what is not as the set wants it.
func unarrived(w *simulate.World) []string {
	v, set := w.View(nil), present(w)
	hash := set.Status.UpdateRevision
	template := eligibility.Compile(&set.Spec.Template, eligibility.ForDaemons)
	selector, err := nodeSelector(rollingUpdate(set).Selector)
	if err != nil {
		return []string{err.Error()}
	}
	pods, problems := map[string][]*corev1.Pod{}, []string{}
	for _, o := range v.Active("set-uid") {
		pods[eligibility.NodeOf(o)] = append(pods[eligibility.NodeOf(o)], o)
	}
	desired, takingPart, kept := 0, 0, 0
	for _, n := range w.Nodes() {
		on, verdict := pods[n.Name], template.Of(n)
		delete(pods, n.Name)
		if verdict.ShouldRun {
			desired++
		}
		if verdict.ShouldRun || len(on) > 0 {
			takingPart++
		}
		switch {
		case !verdict.ShouldContinue && len(on) > 0:
			problems = append(problems, n.Name+" must not run a pod")
		case !verdict.ShouldRun:
		case len(on) == 0:
			if !withholds(set) {
				problems = append(problems, n.Name+" has no pod")
			}
		case len(on) > 1:
			problems = append(problems, n.Name+" has several pods")
		case !podstate.Of(on[0], v.Now(), set.Spec.MinReadySeconds).Available:
			problems = append(problems, n.Name+": its pod is not available")
		case on[0].Labels[contract.RevisionLabel] != hash && selector.Matches(labels.Set(n.Labels)):
			kept++
		case on[0].Labels[contract.RevisionLabel] == hash && !selector.Matches(labels.Set(n.Labels)) && returns(set) && set.Status.CurrentRevision != hash && len(cluster.List[*appsv1.ControllerRevision](v)) > 1:
			problems = append(problems, n.Name+" is updated and not selected")
		}
	}
	for name := range pods {
		if !strings.HasPrefix(name, "node-") {
			problems = append(problems, "a pod on no node")
		}
	}
	n, err := readNumbers(set, desired, takingPart)
	if err == nil && !paused(set) && !onDelete(set) && kept > n.partition {
		problems = append(problems, fmt.Sprintf("%d nodes are not updated, partition %d", kept, n.partition))
	}
	if int(set.Status.DesiredNumberScheduled) != desired || set.Status.ObservedGeneration != set.Generation {
		problems = append(problems, "the status is not that of the set")
	}
	slices.Sort(problems)
	return problems
}

// returns reports whether nodes that are not selected go back.
func returns(set *v1beta1.DaemonSet) bool {
	return rollingUpdate(set).UnselectedNodePolicy == v1beta1.RevertUnselectedNodes && !paused(set)
}

// withholds reports whether nodes may stay without a pod.
func withholds(set *v1beta1.DaemonSet) bool {
	return set.Spec.ScaleStrategy != nil && set.Spec.ScaleStrategy.PartitionedScaling && rollingUpdate(set).Partition != nil
}
