package plan

import (
	"fmt"
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/lifecycle"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/judges"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
	"github.com/flotilla-project/flotilla/core/workloads/conditions"
	"github.com/flotilla-project/flotilla/core/workloads/rollout"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// watch judges every write in the world. What concerns numbers of pods is judged here, after every
// write of the operator; what a plan must never want is judged by planJudges, pass by pass. That no
// write changes nothing, and that a settled world stays settled, is demanded by the world itself.
func watch(w *simulate.World) {
	w.Limit("pods above replicas and maxSurge", countedPods, mostPods)
	w.Limit("pods below replicas that are not available", missingAvailable, mostUnavailable)
	w.CheckInPlace()
	w.CheckClaims()
	w.CheckOwnership("set-uid")
	w.CheckCreations(present(w), mostSurge)
	w.CheckUnique(contract.InstanceIDLabel)
	w.OnEvent(claimsComeBeforePods)
}

func setIn(v *cluster.View) *v1beta1.CloneSet {
	for _, set := range cluster.List[*v1beta1.CloneSet](v) {
		return set
	}
	return nil
}

// countedPods are the active pods as far as they count against replicas.
func countedPods(v *cluster.View) int {
	pods := v.Active("set-uid")
	if setIn(v).Spec.ScaleStrategy.ExcludePreparingDelete {
		pods = slices.DeleteFunc(pods, func(o *corev1.Pod) bool {
			return lifecycle.State(o) == contract.LifecyclePreparingDelete
		})
	}
	return len(pods)
}

func mostPods(v *cluster.View) int {
	n, err := readNumbers(setIn(v))
	if err != nil {
		return math.MaxInt
	}
	return int(n.replicas + n.maxSurge)
}

func mostSurge(v *cluster.View) int {
	n, err := readNumbers(setIn(v))
	if err != nil {
		return math.MaxInt
	}
	return int(n.maxSurge)
}

func missingAvailable(v *cluster.View) int {
	set := setIn(v)
	return int(*set.Spec.Replicas) - len(v.Available(set.UID, set.Spec.MinReadySeconds))
}

func mostUnavailable(v *cluster.View) int {
	n, err := readNumbers(setIn(v))
	if err != nil {
		return math.MaxInt
	}
	return int(n.maxUnavailable)
}

// claimsComeBeforePods demands that a pod that is created finds the claims of its instance, and that they go neither before
// it nor with another one.
func claimsComeBeforePods(w *simulate.World, e cluster.Event) {
	pod, ok := e.Object.(*corev1.Pod)
	if !ok || e.Type != cluster.Added || e.Actor != cluster.OperatorActor {
		return
	}
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim == nil {
			continue
		}
		claim := cluster.Get[*corev1.PersistentVolumeClaim](w.View(nil), pod.Namespace, volume.PersistentVolumeClaim.ClaimName)
		if claim == nil || claim.Labels[contract.InstanceIDLabel] != pod.Labels[contract.InstanceIDLabel] {
			w.Violate("pod %s has no claim %s of its instance", pod.Name, volume.PersistentVolumeClaim.ClaimName)
		} else if claim.DeletionTimestamp != nil || !metav1.IsControlledBy(claim, present(w)) {
			w.Violate("pod %s mounts claim %s, which goes", pod.Name, claim.Name)
		}
	}
}

// planJudges judge a plan for the snapshot.
func planJudges(s Snapshot, todo Plan) []judges.Judge {
	ofPlan := func(name string, judge func(Snapshot, Plan) []string) judges.Judge {
		return judges.Judge{Name: name, Judge: func([]action.Step) []string { return judge(s, todo) }}
	}
	all := judges.CommonJudges()
	if !s.FeatureGates.PartitionRollback && inPlaceStrategy(s.Set).ResizeDeadlineSeconds == nil && s.Chosen.Update != nil {
		all = append(all, judges.NoSpreadOfUntried(podstate.ShortHash(s.Chosen.Update.Name), s.Pods, mostBroken(s), func(o *corev1.Pod) podstate.State { return stateIn(s, o) }))
	}
	return append(all,
		ofPlan("available pods are spared", availablePodsAreSpared),
		ofPlan("the partition holds", partitionHolds),
		ofPlan("a partition keeps the current revision", currentRevisionStays),
		ofPlan("paused changes no revision", pausedChangesNoRevision),
		ofPlan("specified pods go first", specifiedPodsGoFirst),
		ofPlan("claims in use stay", claimsInUseStay),
		judges.NoBreakOfHooks(s.Set.Spec.Lifecycle),
		judges.NoLossOfRevisions(s.Chosen, s.Pods),
	)
}

// mostBroken is how many pods may be out of service in an update: surplus ones make room for more.
func mostBroken(s Snapshot) int {
	n, err := readNumbers(s.Set)
	if err != nil {
		return math.MaxInt
	}
	return max(int(n.maxUnavailable)+max(len(s.Pods)+len(s.Orphans)-int(n.replicas), 0), 1)
}

// availablePodsAreSpared: no available pod is updated while an unavailable one waits for the same, and
// none is deleted while an unavailable one that counts to its revision could go. Pods that have waited for their
// resources to the deadline make way for none.
func availablePodsAreSpared(s Snapshot, todo Plan) []string {
	r := rollingUpdate(s.Set)
	if r.PriorityStrategy != nil || len(r.ScatterStrategy) > 0 {
		return nil
	}
	touched, stuck := map[string]bool{}, map[string]bool{}
	for a := range judges.Actions(todo.Steps, "") {
		touched[a.Object.GetName()] = true
	}
	for _, w := range todo.Waits {
		stuck[w.Object] = true
	}
	for _, refused := range s.Refusals {
		for uid := range refused.Targets {
			stuck[uid] = true
		}
	}
	revision := func(step string, o podstate.State) string {
		if step == stepScale && s.FeatureGates.PreparingUpdateAsUpdate && o.Lifecycle == contract.LifecyclePreparingUpdate {
			return podstate.ShortHash(s.Chosen.Update.Name)
		}
		return o.Revision
	}
	p := newPass(s)
	var wrong []string
	for _, step := range []string{stepUpdate, stepScale} {
		for a := range judges.Actions(todo.Steps, step) {
			victim, ok := a.Object.(*corev1.Pod)
			if !ok || a.Reason == "ScaleIn" == (step == stepUpdate) || !stateIn(s, victim).Available || p.inspect(victim).overdue {
				continue
			}
			for _, o := range s.Pods {
				other := stateIn(s, o)
				if other.Active && !other.Available && !touched[o.Name] && !stuck[o.Name] && !stuck[string(o.UID)] &&
					other.Lifecycle != contract.LifecyclePreparingDelete && revision(step, other) == revision(step, stateIn(s, victim)) {
					wrong = append(wrong, fmt.Sprintf("%s is taken before %s", victim.Name, o.Name))
				}
			}
		}
	}
	return wrong
}

// partitionHolds: a plan leaves no more pods at the update revision than replicas less partition,
// or no more than there were. Pods that are specified or in PreparingDelete are on their way out and count
// only once they are taken back; so are those that have waited for their resources to the deadline.
func partitionHolds(s Snapshot, todo Plan) []string {
	n, err := readNumbers(s.Set)
	if err != nil || onDelete(s.Set) || s.Chosen.Current == nil || s.Chosen.Current.Name == s.Chosen.Update.Name {
		return nil
	}
	hash := podstate.ShortHash(s.Chosen.Update.Name)
	at := map[string]bool{}
	before := 0
	back, p := takenBack(todo), newPass(s)
	for _, o := range s.Pods {
		state := stateIn(s, o)
		leaves := isSpecified(s.Set, o) || p.inspect(o).overdue || state.Lifecycle == contract.LifecyclePreparingDelete && !back[o.Name]
		if state.Active && state.Revision == hash && !leaves {
			at[o.Name] = true
			before++
		}
	}
	for a := range judges.Actions(todo.Steps, "") {
		switch label, set := judges.LabelIn(a, contract.RevisionLabel); {
		case a.Verb == action.Create && cluster.KindOf(a.Object) == "Pod":
			at[a.Object.GetName()] = podstate.ShortHash(a.Object.GetLabels()[contract.RevisionLabel]) == hash
		case a.Verb == action.Delete, a.Verb == action.Release:
			delete(at, a.Object.GetName())
		case set && !isSpecified(s.Set, a.Object):
			at[a.Object.GetName()] = podstate.ShortHash(label) == hash
		}
	}
	after := 0
	for _, is := range at {
		if is {
			after++
		}
	}
	if after > max(before, int(n.replicas-n.partition)) {
		return []string{fmt.Sprintf("%d pods at the update revision after %d, wanted %d", after, before, n.replicas-n.partition)}
	}
	return nil
}

// takenBack are the names of the pods that the plan takes back from PreparingDelete.
func takenBack(todo Plan) map[string]bool {
	back := map[string]bool{}
	for a := range judges.Actions(todo.Steps, "") {
		if state, set := judges.LabelIn(a, contract.LifecycleStateLabel); set && state != contract.LifecyclePreparingDelete {
			back[a.Object.GetName()] = true
		}
	}
	return back
}

// currentRevisionStays: while a partition keeps pods, new pods find the revision that it keeps, however few pods there are.
func currentRevisionStays(s Snapshot, todo Plan) []string {
	keeps := rollout.KeepsPods(rollingUpdate(s.Set).Partition)
	if keeps && s.Chosen.Current != nil && Status(s, todo, action.Failures{}).CurrentRevision != s.Chosen.Current.Name {
		return []string{"revision " + s.Chosen.Current.Name + " is current no more"}
	}
	return nil
}

func pausedChangesNoRevision(s Snapshot, todo Plan) []string {
	if !rollingUpdate(s.Set).Paused {
		return nil
	}
	var wrong []string
	for a := range judges.Actions(todo.Steps, "") {
		if _, changes := judges.LabelIn(a, contract.RevisionLabel); changes || a.Reason == "Recreate" {
			wrong = append(wrong, a.String())
		}
	}
	return wrong
}

func specifiedPodsGoFirst(s Snapshot, todo Plan) []string {
	var wrong []string
	for a := range judges.Actions(todo.Steps, stepScale) {
		if a.Reason != "ScaleIn" {
			continue
		}
		for _, o := range s.Pods {
			if stateIn(s, o).Active && isSpecified(s.Set, o) && podstate.ShortHash(o.Labels[contract.RevisionLabel]) != "" && o.Labels["app"] == "web" {
				wrong = append(wrong, fmt.Sprintf("%s goes before %s", a.Object.GetName(), o.Name))
			}
		}
	}
	return wrong
}

// claimsInUseStay: no plan deletes a claim that a pod mounts of which it knows, unless it deletes the pod.
func claimsInUseStay(s Snapshot, todo Plan) []string {
	inUse := map[string]string{}
	for _, o := range slices.Concat(s.Pods, s.Orphans) {
		for name := range mounted(o) {
			if o.DeletionTimestamp == nil {
				inUse[name] = o.Name
			}
		}
	}
	var wrong []string
	for a := range judges.Actions(todo.Steps, "") {
		if a.Verb != action.Delete {
			continue
		}
		for _, o := range append([]action.Object{a.Object}, a.Dependents...) {
			if user := inUse[o.GetName()]; user != "" && user != a.Object.GetName() && cluster.KindOf(o) == "PersistentVolumeClaim" {
				wrong = append(wrong, fmt.Sprintf("%s goes and %s mounts it", o.GetName(), user))
			}
		}
	}
	return wrong
}

func stateIn(s Snapshot, o *corev1.Pod) podstate.State {
	return podstate.Of(o, s.Now, s.Set.Spec.MinReadySeconds)
}

func isSpecified(set *v1beta1.CloneSet, o metav1.Object) bool {
	_, labelled := o.GetLabels()[contract.SpecifiedDeleteLabel]
	return labelled || slices.Contains(set.Spec.ScaleStrategy.PodsToDelete, o.GetName())
}

// unarrived says what in the world is not as the set wants it.
func unarrived(w *simulate.World) []string {
	set := present(w)
	n, err := readNumbers(set)
	if err != nil {
		return []string{err.Error()}
	}
	var wrong []string
	demand := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	status := set.Status
	active := activePods(w)
	demand(len(active) == int(n.replicas), "%d pods, not %d", len(active), n.replicas)
	available := w.View(nil).Available(set.UID, set.Spec.MinReadySeconds)
	demand(len(available) == int(n.replicas), "%d pods available, not %d", len(available), n.replicas)
	updated := 0
	ids := map[string]bool{}
	for _, o := range active {
		ids[o.Labels[contract.InstanceIDLabel]] = true
		if podstate.ShortHash(o.Labels[contract.RevisionLabel]) != podstate.ShortHash(status.UpdateRevision) {
			continue
		}
		updated++
		want := set.Spec.Template.Spec.Containers[0].Image
		demand(o.Spec.Containers[0].Image == want, "pod %s has image %s, not %s", o.Name, o.Spec.Containers[0].Image, want)
	}
	demand(onDelete(set) || rollingUpdate(set).Paused || updated >= int(n.replicas-n.partition), "%d pods updated, not %d", updated, n.replicas-n.partition)
	demand(status.ObservedGeneration == set.Generation, "observed generation %d, not %d", status.ObservedGeneration, set.Generation)
	demand(int(status.Replicas) == len(active) && int(status.AvailableReplicas) == len(available) && int(status.UpdatedReplicas) == updated,
		"the status counts wrongly: %+v", status)
	ready := conditions.Get(status.Conditions, conditions.Ready)
	demand(ready != nil && ready.Status == corev1.ConditionTrue, "not Ready: %+v", ready)
	wrong = append(wrong, misplacedClaims(w, set, ids)...)
	wrong = append(wrong, simulate.OrphanedRevisions(w, active)...)
	return append(wrong, surplusRevisions(w, set)...)
}

// misplacedClaims: the set owns the claims of its pods. With claims reused, those of lost pods may wait for a new one. One
// that a pod of somebody else mounts stays.
func misplacedClaims(w *simulate.World, set *v1beta1.CloneSet, ids map[string]bool) []string {
	var wrong []string
	for _, o := range activePods(w) {
		for _, v := range o.Spec.Volumes {
			if v.PersistentVolumeClaim == nil || v.PersistentVolumeClaim.ClaimName != v.Name+"-"+set.Name+"-"+o.Labels[contract.InstanceIDLabel] {
				continue
			}
			claim := cluster.Get[*corev1.PersistentVolumeClaim](w.View(nil), gen.Namespace, v.PersistentVolumeClaim.ClaimName)
			if claim == nil || !metav1.IsControlledBy(claim, set) {
				wrong = append(wrong, "claim "+v.PersistentVolumeClaim.ClaimName+" of pod "+o.Name+" is not the set's")
			}
		}
	}
	inUse := map[string]bool{}
	for _, o := range w.Pods() {
		for name := range mounted(o) {
			inUse[name] = true
		}
	}
	for _, claim := range cluster.List[*corev1.PersistentVolumeClaim](w.View(nil)) {
		if claim.DeletionTimestamp == nil && !inUse[claim.Name] && !ids[claim.Labels[contract.InstanceIDLabel]] && metav1.IsControlledBy(claim, set) && !set.Spec.ScaleStrategy.EnablePVCReuse {
			wrong = append(wrong, "claim "+claim.Name+" belongs to nobody")
		}
	}
	return wrong
}

func surplusRevisions(w *simulate.World, set *v1beta1.CloneSet) []string {
	limit, idle := 10, 0
	if set.Spec.RevisionHistoryLimit != nil {
		limit = int(*set.Spec.RevisionHistoryLimit)
	}
	live := judges.CountByRevision(activePods(w))
	for _, r := range cluster.ListOwned[*appsv1.ControllerRevision](w.View(nil), set.UID) {
		if live[podstate.ShortHash(r.Name)] == 0 && r.Name != set.Status.UpdateRevision && r.Name != set.Status.CurrentRevision {
			idle++
		}
	}
	if idle > limit {
		return []string{fmt.Sprintf("%d idle revisions, limit %d", idle, limit)}
	}
	return nil
}
