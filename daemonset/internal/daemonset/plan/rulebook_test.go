package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/eligibility"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/testing/judges"
	"github.com/flotilla-project/flotilla/core/workloads/revision"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

// What the page says of limits and of which nodes take part, read a second time: from the objects alone, without a
// function of the plan.

// limits are the numbers of the spec. They bind nobody where one of them cannot be read.
type limits struct {
	unavailable, surge, partition int
	readable                      bool
}

func limitsOf(set *v1beta1.DaemonSet, nodes, takingPart int) limits {
	r := set.Spec.UpdateStrategy.RollingUpdate
	if r == nil || set.Spec.UpdateStrategy.Type == v1beta1.OnDeleteStrategyType {
		r = &v1beta1.RollingUpdateDaemonSet{}
	}
	var l limits
	var oks [3]bool
	l.unavailable, oks[0] = share(r.MaxUnavailable, nodes, math.Ceil)
	l.surge, oks[1] = share(r.MaxSurge, max(nodes, 1), math.Ceil) // whether a set surges does not depend on how many nodes there are
	l.partition, oks[2] = share(r.Partition, takingPart, math.Floor)
	if l.unavailable == 0 && l.surge == 0 {
		l.unavailable = 1
	}
	l.readable = oks == [3]bool{true, true, true}
	return l
}

// share is a number, or a percentage of the nodes.
func share(v *intstr.IntOrString, nodes int, round func(float64) float64) (n int, ok bool) {
	switch {
	case v == nil:
		return 0, true
	case v.Type == intstr.Int:
		return v.IntValue(), true
	}
	percent, ok := strings.CutSuffix(v.StrVal, "%")
	n, err := strconv.Atoi(percent)
	return int(round(float64(n*nodes) / 100)), ok && err == nil
}

// reading is what a snapshot shows of each existing node, and which of them the update may reach.
type reading struct {
	limits
	update    string // short hash
	former    string // of the revision to return to, where that is known
	reverting bool   // there is one, and the policy says so
	nodes     map[string]*nodeReading
}

type nodeReading struct {
	takesPart, inReach bool
	skippable          bool // unreadyNodePolicy may leave it out of account
	ready, available   bool // a pod that stays is
}

func read(s Snapshot) reading {
	r := reading{nodes: map[string]*nodeReading{}, update: revision.Hash(s.Chosen.Update)}
	desired := 0
	for _, n := range s.Nodes {
		if n.ShouldRun {
			desired++
		}
	}
	rolling := s.Set.Spec.UpdateStrategy.RollingUpdate
	if rolling == nil {
		rolling = &v1beta1.RollingUpdateDaemonSet{}
	}
	reverts := rolling.UnselectedNodePolicy == v1beta1.RevertUnselectedNodes
	current := currentIn(s, rolling)
	all := reverts && current == r.update      // nobody has anything to return to
	for _, orphan := range s.OrphanRevisions { // which the set adopts in the same pass
		if reverts && !all && orphan.DeletionTimestamp == nil && revision.Hash(orphan) == current {
			r.reverting, r.former = true, current
		}
	}
	for _, older := range s.Revisions {
		isFormer := reverts && !all && older.Name != s.Chosen.Update.Name && older.DeletionTimestamp == nil
		r.reverting = r.reverting || isFormer
		if isFormer && revision.Hash(older) == current {
			r.former = current
		}
	}
	var stages [4][]string // updated, in the middle of it, old, and those that wait for their first pod
	total := 0
	for _, n := range s.Nodes {
		found, stage, some := readNode(s, n.Name, r.update)
		r.nodes[n.Name] = found
		found.takesPart = n.ShouldRun || some && !s.FeatureGates.PruneIneligibleNodes
		found.skippable = rolling.UnreadyNodePolicy != "" && rolling.UnreadyNodePolicy != v1beta1.CountUnreadyNodes && !nodeIsReady(n.Node)
		if !found.takesPart {
			continue
		}
		total++
		selected := all || matches(rolling.Selector, n.Node)
		if stage == 1 && !some && !s.HadPod[n.Name] && PartitionedScaling(s.Set) && n.ShouldRun {
			stage = 3
		}
		if stage == 2 && !selected || reverts && !selected {
			continue
		}
		stages[stage] = append(stages[stage], n.Name)
	}
	r.limits = limitsOf(s.Set, desired, total)
	left := max(total-r.partition, 0)
	for stage, names := range stages {
		slices.Sort(names)
		if stage < 3 {
			slices.Reverse(names)
		}
		for _, name := range names {
			r.nodes[name].inReach = left > 0 || all && stage < 3
			left--
		}
	}
	return r
}

// currentIn is the short hash of the revision that nodes return to: the one that the status names, if it exists; the update
// revision instead, where nothing keeps nodes back, or else any, once all nodes have available pods of it, and no others.
func currentIn(s Snapshot, r *v1beta1.RollingUpdateDaemonSet) string {
	common, stored := "", s.Set.Status.CurrentRevision
	for _, n := range s.Nodes {
		found, _, some := readNode(s, n.Name, "")
		if !nodeIsReady(n.Node) || !n.ShouldRun && (!some || s.FeatureGates.PruneIneligibleNodes) {
			continue
		}
		for _, o := range slices.Concat(s.Pods, s.Orphans) {
			if eligibility.NodeOf(o) != n.Name {
				continue
			}
			label := podstate.ShortHash(o.Labels[contract.RevisionLabel])
			if label != cmp.Or(common, label) {
				return stored
			}
			common = label
		}
		if !found.available {
			return stored
		}
	}
	keeps := r.Selector != nil || r.Partition != nil && r.Partition.String() != "0"
	known := slices.ContainsFunc(slices.Concat(s.Revisions, s.OrphanRevisions), func(r *appsv1.ControllerRevision) bool { return revision.Hash(r) == stored })
	if common != "" && (!known || common == revision.Hash(s.Chosen.Update) && !keeps) {
		return common
	}
	return stored
}

// readNode reads the pods of a node: how far its update is, and whether it has one that has not ended for good.
func readNode(s Snapshot, node, update string) (found *nodeReading, stage int, some bool) {
	found = &nodeReading{}
	stage = 1
	for _, o := range slices.Concat(s.Pods, s.Orphans) {
		if eligibility.NodeOf(o) != node {
			continue
		}
		ended := o.Status.Phase == corev1.PodFailed || o.Status.Phase == corev1.PodSucceeded
		some = some || o.DeletionTimestamp == nil || !ended
		if o.DeletionTimestamp != nil || metav1.GetControllerOf(o) == nil {
			continue
		}
		held := o.Labels[contract.LifecycleStateLabel] == contract.LifecyclePreparingDelete
		switch {
		case podstate.ShortHash(o.Labels[contract.RevisionLabel]) == update:
			stage = 0
		case !held && stage == 1:
			stage = 2
		}
		state := podstate.Of(o, s.Now, s.Set.Spec.MinReadySeconds)
		found.ready = found.ready || state.Ready && state.Active && !held
		found.available = found.available || state.Available && state.Active && !held
	}
	return found, stage, some
}

func matches(selector *metav1.LabelSelector, node *corev1.Node) bool {
	return selector == nil || matchesLabels(selector, node.Labels)
}

func matchesLabels(selector *metav1.LabelSelector, all map[string]string) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(labels.Set(all))
}

func nodeIsReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// replaced are the pods that the plan updates, in either way, with the revision that those get which keep their name.
func replaced(todo Plan) map[*corev1.Pod]string {
	all := map[*corev1.Pod]string{}
	for a := range judges.Actions(todo.Steps, "") {
		o, ok := a.Object.(*corev1.Pod)
		label, moved := judges.LabelIn(a, contract.RevisionLabel)
		if ok && a.Verb != action.Create && (a.Reason == "Recreate" || a.Reason == "Update" && moved) {
			all[o] = podstate.ShortHash(label)
		}
	}
	return all
}

// surged are the pods beside which the plan creates another one for its update: nothing else takes them away.
func surged(s Snapshot, todo Plan) []*corev1.Pod {
	gets, gone := map[string]bool{}, map[string]bool{}
	for a := range judges.Actions(todo.Steps, "") {
		state, _ := judges.LabelIn(a, contract.LifecycleStateLabel)
		switch o, ok := a.Object.(*corev1.Pod); {
		case !ok:
		case a.Verb == action.Create:
			gets[eligibility.NodeOf(o)] = true
		case a.Verb == action.Delete, state == contract.LifecyclePreparingDelete:
			gone[o.Name] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(s.Pods), func(o *corev1.Pod) bool {
		state := podstate.Of(o, s.Now, 0)
		return !gets[eligibility.NodeOf(o)] || gone[o.Name] || !matchesLabels(s.Set.Spec.Selector, o.Labels) ||
			!state.Active || state.SpecifiedDelete || state.Lifecycle == contract.LifecyclePreparingDelete
	})
}

// rangeHolds, I-ADS-4: pods of nodes that partition and selector leave out keep their revision, or return to the last one
// that was rolled out to all nodes where the policy says so. New pods there have that one, too.
func rangeHolds(s Snapshot, todo Plan) []string {
	if s.Set.Spec.UpdateStrategy.Type == v1beta1.OnDeleteStrategyType || todo.Err != nil || s.Chosen.Update == nil {
		return nil
	}
	r := read(s)
	var wrong []string
	for o, label := range replaced(todo) {
		n, own := r.nodes[eligibility.NodeOf(o)], podstate.ShortHash(o.Labels[contract.RevisionLabel])
		returns := r.reverting && label != r.update && own == r.update
		stuck := r.reverting && label == "" && own != r.update && own == cmp.Or(r.former, own) && lacksARunningContainer(o) // on its way back
		if n == nil || !n.takesPart || !n.inReach && !returns && !stuck {
			wrong = append(wrong, "out of reach: "+o.Name)
		}
		if returns && label != "" && label != cmp.Or(r.former, label) {
			wrong = append(wrong, "returns to a revision that not all nodes had: "+o.Name)
		}
		if n != nil && n.inReach && label != "" && label != r.update {
			wrong = append(wrong, "within reach, and not updated: "+o.Name)
		}
	}
	for _, former := range surged(s, todo) {
		n := r.nodes[eligibility.NodeOf(former)]
		returns := r.reverting && podstate.ShortHash(former.Labels[contract.RevisionLabel]) == r.update
		if n == nil || !n.inReach && !returns {
			wrong = append(wrong, "out of reach, and gets a successor: "+former.Name)
		}
	}
	for a := range judges.Actions(todo.Steps, "") {
		o, ok := a.Object.(*corev1.Pod)
		if !ok || a.Verb != action.Create {
			continue
		}
		n := r.nodes[eligibility.NodeOf(o)]
		label := podstate.ShortHash(o.Labels[contract.RevisionLabel])
		old := label != r.update
		if old && label != cmp.Or(r.former, label) {
			wrong = append(wrong, "a new pod of a revision that not all nodes had: "+o.Name)
		}
		if n != nil && old != (r.reverting && !n.inReach) {
			wrong = append(wrong, fmt.Sprintf("a new pod within reach: %t, of an older revision: %t: %s", n.inReach, old, o.Name))
		}
	}
	return wrong
}

// lacksARunningContainer reports whether a container is down, so that its limits cannot be raised.
func lacksARunningContainer(o *corev1.Pod) bool {
	return slices.ContainsFunc(o.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.State.Running == nil })
}

// budgetHolds, I-ADS-3: without surge, nodes within reach that have no available pod and those that lose it by the plan
// are together no more than maxUnavailable; and those without a ready pod with those that lose theirs.
func budgetHolds(s Snapshot, todo Plan) []string {
	if s.Chosen.Update == nil || todo.Err != nil {
		return nil
	}
	r := read(s)
	if !r.readable || r.surge > 0 {
		return nil
	}
	for _, o := range s.Pods { // one that was to go serves all the while, and stays
		if n := r.nodes[eligibility.NodeOf(o)]; n != nil && isTakenBack(o, todo) && podstate.Of(o, s.Now, 0).Ready {
			n.ready = true
		}
	}
	lost := map[string]bool{}
	for o := range replaced(todo) {
		lost[eligibility.NodeOf(o)] = true
	}
	updates := len(lost) > 0
	for a := range judges.Actions(todo.Steps, stepDelete) { // nodes that lose what is specified count wherever they are
		if o, ok := a.Object.(*corev1.Pod); ok && updates && a.Reason == "SpecifiedDelete" {
			lost[eligibility.NodeOf(o)] = true
		}
	}
	down, changing, losesReady, losesAvailable := 0, 0, 0, 0
	for name, n := range r.nodes {
		switch {
		case !n.inReach && !lost[name]:
		case n.available && lost[name]:
			losesAvailable++
		case n.available || n.skippable:
		case n.ready && lost[name]:
			losesReady++
		case n.ready:
			changing++
		default:
			down++
		}
	}
	var wrong []string
	if all := down + changing + losesReady + losesAvailable; losesAvailable > 0 && all > r.unavailable {
		wrong = append(wrong, fmt.Sprintf("%d nodes without an available pod, %d may be", all, r.unavailable))
	}
	if all := down + losesReady + losesAvailable; losesReady > 0 && all > r.unavailable {
		wrong = append(wrong, fmt.Sprintf("%d nodes without a ready pod, %d may be", all, r.unavailable))
	}
	return wrong
}

// isTakenBack reports whether the plan takes the pod back from PreparingDelete, or would if that were not refused.
func isTakenBack(o *corev1.Pod, todo Plan) bool {
	if o.DeletionTimestamp != nil || o.Labels[contract.LifecycleStateLabel] != contract.LifecyclePreparingDelete {
		return false
	}
	for a := range judges.Actions(todo.Steps, "") {
		if a.Reason == "PreDeleteCancelled" && a.Object.GetName() == o.Name {
			return true
		}
	}
	return slices.ContainsFunc(todo.Waits, func(w action.Wait) bool { return w.Reason == action.WaitRefused && w.Object == o.Name })
}

// surgesAreSafe, I-ADS-2: in a surge, a ready old pod goes for its update only if another pod is available on its node.
func surgesAreSafe(s Snapshot, todo Plan) []string {
	var wrong []string
	for a := range judges.Actions(todo.Steps, "") {
		o, ok := a.Object.(*corev1.Pod)
		if !ok || a.Reason != "Surge" || a.Verb == action.Create || !podstate.Of(o, s.Now, s.Set.Spec.MinReadySeconds).Ready {
			continue
		}
		if !slices.ContainsFunc(s.Pods, func(other *corev1.Pod) bool {
			state := podstate.Of(other, s.Now, s.Set.Spec.MinReadySeconds)
			return other.Name != o.Name && eligibility.NodeOf(other) == eligibility.NodeOf(o) && state.Available && state.Active
		}) {
			wrong = append(wrong, a.String())
		}
	}
	return wrong
}
