package plan

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/judges"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
	"github.com/flotilla-project/flotilla/core/workloads/conditions"
	"github.com/flotilla-project/flotilla/core/workloads/model"
	"github.com/flotilla-project/flotilla/core/workloads/revision"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// findings collects what is not as it should be.
type findings []string

func (f *findings) demand(ok bool, format string, args ...any) {
	if !ok {
		*f = append(*f, fmt.Sprintf(format, args...))
	}
}

// unarrived says what in the world is not as the set wants it.
func unarrived(w *simulate.World) []string {
	set := present(w)
	live, n, ok := liveIn(w.View(nil))
	if !ok {
		return []string{"the spec cannot be followed"}
	}
	var f findings
	active := activePods(w)
	want := []int32{}
	for _, ordinal := range live.All() {
		want = append(want, ordinal)
	}
	f.demand(fmt.Sprint(running(w)) == fmt.Sprint(want), "pods %v, not %v", running(w), want)
	available := w.View(nil).Available(set.UID, n.minReady)
	f.demand(len(available) == len(want), "%d pods available, not %d", len(available), len(want))
	updated := 0
	for _, o := range active {
		ordinal, _ := ordinalOf(set.Name, o.Name)
		rank, _ := live.Rank(ordinal)
		f.member(w, set, o)
		f.grown(w, set, o, rank)
		if podstate.ShortHash(o.Labels[contract.RevisionLabel]) != podstate.ShortHash(set.Status.UpdateRevision) {
			f.demand(rollingUpdate(set).UnorderedUpdate != nil || rank < int(n.partition) || onDelete(set) || rollingUpdate(set).Paused, "pod %s is old", o.Name)
			continue
		}
		updated++
		image := set.Spec.Template.Spec.Containers[0].Image
		f.demand(o.Spec.Containers[0].Image == image, "pod %s has image %s, not %s", o.Name, o.Spec.Containers[0].Image, image)
	}
	f.demand(onDelete(set) || rollingUpdate(set).Paused || updated >= int(n.replicas-n.partition), "%d pods updated, not %d", updated, n.replicas-n.partition)
	f.status(set, len(available), updated)
	f.revisions(w, set)
	f.unused(w, set)
	return append(f, simulate.OrphanedRevisions(w, active)...)
}

// unused judges claims without a pod: they go or stay as the retention policy says, also where their pod went before.
func (f *findings) unused(w *simulate.World, set *v1beta1.StatefulSet) {
	p := &pass{Snapshot: Snapshot{Snapshot: model.Snapshot[*v1beta1.StatefulSet]{Set: set}}}
	live, _, _ := liveIn(w.View(nil))
	for _, claim := range cluster.List[*corev1.PersistentVolumeClaim](w.View(nil)) {
		ordinal, present := p.ordinalOfClaim(claim.Name)
		_, runs := live.Rank(ordinal)
		goes := present && !runs && p.deletesWithScale() && p.isMarked(claim) && !hasOtherOwner(claim, set.UID)
		f.demand(!goes || claim.DeletionTimestamp != nil || podOf(w, ordinal) != nil, "claim %s is left behind", claim.Name)
		f.demand(present || !isOwner(claim, set.UID), "claim %s goes with the set, and its template was removed", claim.Name)
	}
}

// member judges what only stateful pods have.
func (f *findings) member(w *simulate.World, set *v1beta1.StatefulSet, o *corev1.Pod) {
	index, _ := indexOf(set.Name, o.Name)
	f.demand(o.Labels[appsv1.StatefulSetPodNameLabel] == o.Name && o.Labels[appsv1.PodIndexLabel] == index, "pod %s has labels %v", o.Name, o.Labels)
	f.demand(hasStorage(o, set.Spec.VolumeClaimTemplates) || onDelete(set) || rollingUpdate(set).Partition != nil, "pod %s lacks a volume", o.Name)
	for _, v := range o.Spec.Volumes {
		if c := v.PersistentVolumeClaim; c != nil {
			f.demand(cluster.Get[*corev1.PersistentVolumeClaim](w.View(nil), gen.Namespace, c.ClaimName) != nil, "claim %s does not exist", c.ClaimName)
		}
	}
}

// grown judges whether the claims of the pod have followed their templates.
func (f *findings) grown(w *simulate.World, set *v1beta1.StatefulSet, o *corev1.Pod, rank int) {
	r := rollingUpdate(set)
	if set.Spec.VolumeClaimUpdateStrategy.Type != v1beta1.OnPodRollingUpdate || onDelete(set) || r.Paused || r.UnorderedUpdate != nil || rank < int(valueOr(r.Partition, 0)) {
		return
	}
	for i := range set.Spec.VolumeClaimTemplates {
		t := &set.Spec.VolumeClaimTemplates[i]
		claim := cluster.Get[*corev1.PersistentVolumeClaim](w.View(nil), gen.Namespace, claimName(t, o.Name))
		f.demand(claim != nil && !isSmallerThanTemplate(claim, t) && !hasLess(claim, requested(t)), "claim %s has not grown", claimName(t, o.Name))
	}
}

func (f *findings) status(set *v1beta1.StatefulSet, available, updated int) {
	status := set.Status
	f.demand(status.ObservedGeneration == set.Generation, "observed generation %d, not %d", status.ObservedGeneration, set.Generation)
	f.demand(int(status.AvailableReplicas) == available && int(status.UpdatedReplicas) == updated, "the status counts wrongly: %+v", status)
	for _, t := range []string{conditions.Ready, v1beta1.StatefulSetAvailable} {
		c := conditions.Get(status.Conditions, t)
		f.demand(c != nil && c.Status == corev1.ConditionTrue, "not %s: %+v", t, status.Conditions)
	}
}

func (f *findings) revisions(w *simulate.World, set *v1beta1.StatefulSet) {
	limit, idle := valueOr(set.Spec.RevisionHistoryLimit, revision.DefaultHistoryLimit), int32(0)
	live := judges.CountByRevision(w.View(nil).Owned(set.UID))
	for _, r := range cluster.ListOwned[*appsv1.ControllerRevision](w.View(nil), set.UID) {
		if live[podstate.ShortHash(r.Name)] == 0 && r.Name != set.Status.UpdateRevision && r.Name != set.Status.CurrentRevision {
			idle++
		}
	}
	f.demand(idle <= limit, "%d idle revisions, limit %d", idle, limit)
}
