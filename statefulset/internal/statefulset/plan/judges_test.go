package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/judges"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
	"github.com/flotilla-project/flotilla/statefulset/internal/ordinals"
)

// watch judges every write in the world. What concerns numbers of pods is judged here, after every
// write of the operator; what a plan must never want is judged by planJudges, pass by pass. That no
// write changes nothing, and that a settled world stays settled, is demanded by the world itself.
func watch(w *simulate.World) {
	w.Limit("live ordinals out of service", outOfService, mostOutOfService)
	w.CheckInPlace()
	w.CheckClaims()
	w.CheckOwnership("set-uid")
	w.CheckCreations(newSet(0), nil)
	w.OnEvent(claimsAreRetained)
	w.OnEvent(podsHaveTheirClaims)
	w.OnEvent(onePodForEachOrdinal())
	w.OnEvent(oneReplacementForEachSize())
	w.OnEvent(kubeletsHaveTheirTime)
}

// liveIn are the live ordinals of the set in the view, and whether its spec says which.
func liveIn(v *cluster.View) (ordinals.Live, numbers, bool) {
	n, reserved, err := readNumbers(setIn(v), allFeatureGates())
	return reserved.Live(n.start, n.replicas), n, err == nil
}

func outOfService(v *cluster.View) int {
	live, n, ok := liveIn(v)
	if !ok {
		return 0
	}
	serving := 0
	for _, o := range v.Available("set-uid", n.minReady) {
		if ordinal, member := ordinalOf("web", o.Name); member {
			if _, runs := live.Rank(ordinal); runs {
				serving++
			}
		}
	}
	return live.Len() - serving
}

func mostOutOfService(v *cluster.View) int {
	if _, n, ok := liveIn(v); ok {
		return n.maxUnavailable
	}
	return math.MaxInt
}

// claimsAreRetained demands that under policy Retain nobody deletes a claim that the set has had in its hands.
func claimsAreRetained(w *simulate.World, e cluster.Event) {
	claim, ok := e.Object.(*corev1.PersistentVolumeClaim)
	if !ok || claim.DeletionTimestamp == nil && e.Type != cluster.Deleted {
		return
	}
	if e.Actor == cluster.OperatorActor && claim.Annotations[v1beta1.DeleteWhenScaledAnnotation] != "set-uid" {
		w.Violate("claim %s is deleted, which does not go with its ordinal", claim.Name)
	}
	if e.Actor == cluster.CollectorActor && e.Old.GetDeletionTimestamp() == nil && present(w) != nil && present(w).Spec.PersistentVolumeClaimRetentionPolicy == nil {
		w.Violate("claim %s is collected and the set retains claims", claim.Name)
	}
}

// podsHaveTheirClaims demands that a pod that is created finds the claims of its ordinal.
func podsHaveTheirClaims(w *simulate.World, e cluster.Event) {
	pod, ok := e.Object.(*corev1.Pod)
	if !ok || e.Type != cluster.Added || e.Actor != cluster.OperatorActor {
		return
	}
	for _, volume := range pod.Spec.Volumes {
		if c := volume.PersistentVolumeClaim; c != nil && !isClaimName(c.ClaimName, volume.Name, pod.Name) {
			w.Violate("pod %s has claim %s", pod.Name, c.ClaimName)
		}
	}
}

// onePodForEachOrdinal demands that a pod comes only after the former one of its name is gone.
func onePodForEachOrdinal() func(*simulate.World, cluster.Event) {
	exists := map[string]bool{}
	return func(w *simulate.World, e cluster.Event) {
		if e.Kind != "Pod" {
			return
		}
		name := e.Object.GetName()
		if e.Type == cluster.Added && exists[name] {
			w.Violate("two pods %s", name)
		}
		exists[name] = e.Type != cluster.Deleted
	}
}

// oneReplacementForEachSize demands that a claim that awaits a mount has one pod replaced for each size.
func oneReplacementForEachSize() func(*simulate.World, cluster.Event) {
	replaced := map[string]types.UID{}
	return func(w *simulate.World, e cluster.Event) {
		claim, ok := e.Object.(*corev1.PersistentVolumeClaim)
		if !ok || e.Actor != cluster.OperatorActor || claim.Annotations[v1beta1.RemountAnnotation] == "" {
			return
		}
		pod, size := remountOf(claim)
		key := string(claim.UID) + size
		if before, known := replaced[key]; known && before != pod {
			w.Violate("a second pod is replaced for claim %s of %s", claim.Name, size)
		}
		replaced[key] = pod
	}
}

// newestRevision is the name of the update revision. The status says it later.
func newestRevision(w *simulate.World) string {
	all := cluster.List[*appsv1.ControllerRevision](w.View(nil))
	return slices.MaxFunc(all, func(a, b *appsv1.ControllerRevision) int { return cmp.Compare(a.Revision, b.Revision) }).Name
}

// kubeletsHaveTheirTime demands that no pod is replaced for the sake of a size alone as long as its kubelet may grow the
// file system.
func kubeletsHaveTheirTime(w *simulate.World, e cluster.Event) {
	claim, ok := e.Object.(*corev1.PersistentVolumeClaim)
	set := present(w)
	if !ok || set == nil || e.Actor != cluster.OperatorActor || e.Old == nil || e.Old.GetAnnotations()[v1beta1.RemountAnnotation] == claim.Annotations[v1beta1.RemountAnnotation] {
		return
	}
	uid, _ := remountOf(claim)
	newest := newestRevision(w)
	for _, o := range w.Pods() {
		pending := pendingFileSystem(claim)
		updated := podstate.ShortHash(o.Labels[contract.RevisionLabel]) == podstate.ShortHash(newest)
		if o.UID == uid && updated && hasStorage(o, set.Spec.VolumeClaimTemplates) && pending != nil && w.Now().Sub(pending.LastTransitionTime.Time) < kubeletPatience {
			w.Violate("pod %s is replaced for claim %s, which its kubelet may yet grow", o.Name, claim.Name)
		}
	}
}

// planJudges judge a plan for the snapshot.
func planJudges(s Snapshot, todo Plan) []judges.Judge {
	ofPlan := func(name string, judge func(Snapshot, Plan) []string) judges.Judge {
		return judges.Judge{Name: name, Judge: func([]action.Step) []string { return judge(s, todo) }}
	}
	all := judges.CommonJudges()
	if n, reserved, err := readNumbers(s.Set, s.FeatureGates); err == nil && !ordered(s.Set) && inPlaceStrategy(s.Set).ResizeDeadlineSeconds == nil && s.Chosen.Update != nil {
		live := slices.DeleteFunc(slices.Clone(s.Pods), func(o *corev1.Pod) bool { // others may be out of service, as many as there are
			ordinal, _ := ordinalOf(s.Set.Name, o.Name)
			_, runs := reserved.Live(n.start, n.replicas).Rank(ordinal)
			return !runs
		})
		all = append(all, judges.NoSpreadOfUntried(podstate.ShortHash(s.Chosen.Update.Name), live, n.maxUnavailable, func(o *corev1.Pod) podstate.State {
			return podstate.Of(o, s.Now, n.minReady)
		}))
	}
	return append(all,
		ofPlan("only live ordinals get pods", onlyLiveOrdinalsGetPods),
		ofPlan("claims go with ordinals that do not run", claimsGoWithTheirOrdinals),
		ofPlan("pods come and go in order", orderIsKept),
		ofPlan("the partition holds", partitionHolds),
		ofPlan("a partition keeps the current revision", currentRevisionStays),
		ofPlan("paused changes no revision", pausedChangesNoRevision),
		ofPlan("nobody waits without a word", nobodyWaitsWithoutAWord),
		judges.NoBreakOfHooks(s.Set.Spec.Lifecycle),
		judges.NoLossOfRevisions(s.Chosen, s.Pods),
	)
}

// onlyLiveOrdinalsGetPods: pods are created for live ordinals that have none, and scaled in only
// where the ordinal does not run.
func onlyLiveOrdinalsGetPods(s Snapshot, todo Plan) []string {
	n, reserved, err := readNumbers(s.Set, s.FeatureGates)
	live := reserved.Live(n.start, n.replicas)
	taken := map[string]bool{}
	for _, o := range s.Pods {
		taken[o.Name] = true
	}
	var wrong []string
	for a := range judges.Actions(todo.Steps, "") {
		ordinal, member := ordinalOf(s.Set.Name, a.Object.GetName())
		_, runs := live.Rank(ordinal)
		switch {
		case !isPod(a):
		case err != nil && (a.Verb == action.Create || a.Verb == action.Delete):
			wrong = append(wrong, "although the spec cannot be followed: "+a.String())
		case a.Verb == action.Create && (!member || !runs || taken[a.Object.GetName()]):
			wrong = append(wrong, a.String())
		case a.Reason == "ScaleIn" && runs:
			wrong = append(wrong, a.String())
		}
	}
	return wrong
}

// claimsGoWithTheirOrdinals: a claim is deleted only where whenScaled says so, and its ordinal neither runs nor has a pod.
func claimsGoWithTheirOrdinals(s Snapshot, todo Plan) []string {
	p := newPass(s)
	var wrong []string
	for a := range judges.Actions(todo.Steps, stepClaims) {
		ordinal, _ := p.ordinalOfClaim(a.Object.GetName())
		_, runs := p.live.Rank(ordinal)
		hasPod := slices.ContainsFunc(s.Pods, func(o *corev1.Pod) bool { return o.Name == podName(s.Set.Name, ordinal) })
		if a.Verb == action.Delete && (runs || hasPod || !p.deletesWithScale()) {
			wrong = append(wrong, a.String())
		}
	}
	return wrong
}

// orderIsKept: in order, a pod is created once all before it are available, and one at a time; one is
// removed at a time, once all live ones are available.
func orderIsKept(s Snapshot, todo Plan) []string {
	if !ordered(s.Set) || todo.Err != nil {
		return nil
	}
	p := newPass(s)
	creates, removals := 0, 0
	for a := range judges.Actions(todo.Steps, "") {
		ordinal, _ := ordinalOf(s.Set.Name, a.Object.GetName())
		created := a.Verb == action.Create && isPod(a)
		if !created && a.Reason != "ScaleIn" {
			continue
		}
		if created {
			creates++
		} else {
			removals++
		}
		for _, slot := range p.slots {
			if (slot.ordinal < ordinal || !created) && (slot.pod == nil || !slot.pod.serving()) {
				return []string{fmt.Sprintf("%s, but %d is not available", a, slot.ordinal)}
			}
		}
	}
	for _, o := range p.condemned {
		if o.Terminating && removals > 0 {
			return []string{"a second pod is removed while " + o.Pod.Name + " is not gone"}
		}
	}
	if creates > 1 || removals > 1 {
		return []string{fmt.Sprintf("%d created and %d removed at a time", creates, removals)}
	}
	return nil
}

// partitionHolds: in order, no pod of the first partition ordinals gets to the update revision; without
// order, no fewer than partition pods are left at another one.
func partitionHolds(s Snapshot, todo Plan) []string {
	p := newPass(s)
	if todo.Err != nil || onDelete(s.Set) || s.Chosen.Current == nil || p.hasUpdateTemplate(podstate.ShortHash(s.Chosen.Current.Name)) {
		return nil
	}
	hash := p.updateHash()
	isOrdered := rollingUpdate(s.Set).UnorderedUpdate == nil
	before, after := map[string]bool{}, map[string]bool{} // not updated
	rank := map[string]int{}
	for i := range p.slots {
		rank[podName(s.Set.Name, p.slots[i].ordinal)] = p.slots[i].rank
		if o := p.slots[i].pod; o != nil && !o.updated {
			before[o.Pod.Name], after[o.Pod.Name] = true, true
		}
	}
	var wrong []string
	for a := range judges.Actions(todo.Steps, "") {
		label, moved := judges.LabelIn(a, contract.RevisionLabel)
		if a.Verb == action.Create && isPod(a) {
			label, moved = a.Object.GetLabels()[contract.RevisionLabel], true
		}
		r, isLive := rank[a.Object.GetName()]
		switch {
		case !isLive || a.Verb == action.Delete && a.Reason != "Recreate":
		case moved && podstate.ShortHash(label) != hash:
			after[a.Object.GetName()] = true
		case moved || a.Reason == "Recreate":
			delete(after, a.Object.GetName())
			if isOrdered && r < int(p.numbers.partition) && !slices.Contains([]string{"Refresh", "SelectorMatch"}, a.Reason) {
				wrong = append(wrong, a.String())
			}
		}
	}
	if !isOrdered && len(after) < min(len(before), int(p.numbers.partition)) {
		wrong = append(wrong, fmt.Sprintf("%d pods left at another revision after %d, partition %d", len(after), len(before), p.numbers.partition))
	}
	return wrong
}

// currentRevisionStays: while a partition keeps pods, new pods find the revision that it keeps, however few pods there are.
func currentRevisionStays(s Snapshot, todo Plan) []string {
	keeps := valueOr(rollingUpdate(s.Set).Partition, 0) > 0
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
		if _, changes := judges.LabelIn(a, contract.RevisionLabel); changes && a.Reason == "Update" || a.Reason == "Recreate" {
			wrong = append(wrong, a.String())
		}
	}
	return wrong
}

// nobodyWaitsWithoutAWord: at once, every empty ordinal and every broken pod that an update may reach
// gets its action, or the plan says for what it waits. A pod that does not come to an end holds up no
// other.
func nobodyWaitsWithoutAWord(s Snapshot, todo Plan) []string {
	if ordered(s.Set) || todo.Err != nil || s.Set.DeletionTimestamp != nil {
		return nil
	}
	acted, waits := map[string]bool{}, len(todo.Waits) > 0
	for a := range judges.Actions(todo.Steps, "") {
		name := a.Object.GetName()
		if _, claim := a.Object.(*corev1.PersistentVolumeClaim); claim { // what is done to a claim is done for its pod
			name = name[strings.Index(name, s.Set.Name+"-"):]
		}
		acted[name] = true
	}
	var wrong []string
	p := newPass(s)
	for i := range p.slots {
		o := p.slots[i].pod
		name := podName(s.Set.Name, p.slots[i].ordinal)
		switch {
		case o == nil && !acted[name] && !waits:
			wrong = append(wrong, "nothing creates "+name)
		case o == nil || acted[name] || waits || rollingUpdate(s.Set).Paused:
		case o.inRange && !o.upToDate() && !o.serving() && o.Active && !o.deleting && o.Lifecycle != contract.LifecyclePreparingUpdate:
			wrong = append(wrong, "nothing updates "+name)
		}
	}
	return wrong
}

func isPod(a action.Action) bool {
	_, ok := a.Object.(*corev1.Pod)
	return ok
}
