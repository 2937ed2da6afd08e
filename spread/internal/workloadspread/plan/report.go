package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/subsets"
)

// left returns how much is left of the life of an entry. It begins when the entry was first seen, and now for an entry that
// was not seen before.
func (c *computation) left(e subsets.Entry, written metav1.Time, life time.Duration) time.Duration {
	since := written.Time
	if c.Seen != nil {
		var ok bool
		if since, ok = c.Seen[e]; !ok {
			since = c.Now
		}
	}
	return since.Add(life).Sub(c.Now)
}

// report computes the next status.
func (c *computation) report() {
	next := &v1beta1.WorkloadSpreadStatus{
		ObservedGeneration: c.Spread.Generation, VersionedSubsetStatuses: map[string][]v1beta1.SubsetStatus{},
	}
	total := &group{subsets: make([][]*corev1.Pod, len(c.limits)), replicas: make([]int32, len(c.limits))}
	for _, version := range c.versions() {
		g := c.groups[version]
		next.VersionedSubsetStatuses[version] = c.count(g)
		for i := range g.subsets {
			total.subsets[i] = append(total.subsets[i], g.subsets[i]...)
			total.replicas[i] += g.replicas[i]
		}
	}
	for _, r := range c.reserved {
		e := &next.VersionedSubsetStatuses[r.version][r.subset]
		if e.CreatingPods == nil {
			e.CreatingPods = map[string]metav1.Time{}
		}
		e.CreatingPods[r.pod] = c.now().Rfc3339Copy()
		e.MissingReplicas = subsets.Room(c.limits[r.subset], e)
		c.plan.RequeueWithin(subsets.CreatingLife)
	}
	next.SubsetStatuses = c.entriesOf(total, c.Spread.Status.SubsetStatuses, true)
	c.setConditions(next)
	next.Distribution = distribution(next.SubsetStatuses, c.limits)
	c.plan.Status = next
}

// distribution shows how many pods each subset has and may have. A printed column shows one value, and no list.
func distribution(totals []v1beta1.SubsetStatus, limits []int32) string {
	parts := make([]string, len(totals))
	for i := range totals {
		parts[i] = fmt.Sprintf("%s %d", totals[i].Name, totals[i].Replicas)
		if limits[i] != subsets.Unlimited {
			parts[i] += fmt.Sprintf("/%d", limits[i])
		}
	}
	return strings.Join(parts, ", ")
}

// count returns the entries of one version.
func (c *computation) count(g *group) []v1beta1.SubsetStatus {
	list := c.entriesOf(g, c.Spread.Status.VersionedSubsetStatuses[g.version], false)
	for i := range list {
		e := &list[i]
		active := map[string]bool{}
		for _, pod := range g.subsets[i] {
			active[pod.Name] = true
		}
		c.keepCreating(g, e)
		c.keepDeleting(g, active, e)
		e.MissingReplicas = subsets.Room(c.limits[i], e)
	}
	return list
}

// entriesOf returns the entries with replicas, room and condition; for totals without the pods that are being created or
// deleted.
func (c *computation) entriesOf(g *group, before []v1beta1.SubsetStatus, total bool) []v1beta1.SubsetStatus {
	list := subsets.Entries(c.Spread, before)
	for i := range list {
		e := &list[i]
		e.Replicas = g.replicas[i]
		if total {
			e.CreatingPods, e.DeletingPods = nil, nil
		}
		e.MissingReplicas = subsets.Room(c.limits[i], e)
		c.setCondition(e, i, g.subsets[i], total)
	}
	return list
}

// keepCreating drops the places of pods that were seen or have not appeared in time.
func (c *computation) keepCreating(g *group, e *v1beta1.SubsetStatus) {
	for _, id := range slices.Sorted(maps.Keys(e.CreatingPods)) {
		at := e.CreatingPods[id]
		left := c.left(subsets.Creating(g.version, e.Name, id, at), at, subsets.CreatingLife)
		pod := g.seen[id]
		switch {
		case g.noted[id]: // it is there, and about to be marked
		case pod != nil && c.appeared(pod, id, e):
			delete(e.CreatingPods, id)
		case left <= 0:
			delete(e.CreatingPods, id)
			if pod == nil {
				c.notify(corev1.EventTypeWarning, EventCreatePodFailed, "pod "+id+" of subset "+e.Name+" was admitted but not created")
			}
		default:
			c.plan.RequeueWithin(left)
		}
	}
	if len(e.CreatingPods) == 0 {
		e.CreatingPods = nil
	}
}

// appeared reports whether a pod is the one that a place was kept for. A pod with a uid is. By name it can be the one
// before, with a successor that is about to come: the pod is terminating, or its deletion was admitted.
func (c *computation) appeared(pod *corev1.Pod, id string, e *v1beta1.SubsetStatus) bool {
	if pod.Name != id {
		return true
	}
	_, leaving := e.DeletingPods[id]
	return !leaving && pod.DeletionTimestamp == nil
}

// keepDeleting drops deletions that have begun, and those that have not in time.
func (c *computation) keepDeleting(g *group, active map[string]bool, e *v1beta1.SubsetStatus) {
	for _, name := range slices.Sorted(maps.Keys(e.DeletingPods)) {
		at := e.DeletingPods[name]
		left := c.left(subsets.Deleting(g.version, e.Name, name, at), at, subsets.DeletingLife)
		switch {
		case !active[name]:
			delete(e.DeletingPods, name)
		case left <= 0:
			delete(e.DeletingPods, name)
			c.notify(corev1.EventTypeWarning, EventDeletePodFailed, fmt.Sprintf(
				"pod %s of subset %s still runs %s after its deletion or eviction was counted: another webhook or a budget may have rejected it", name, e.Name, subsets.DeletingLife))
		default:
			c.plan.RequeueWithin(left)
		}
	}
	if len(e.DeletingPods) == 0 {
		e.DeletingPods = nil
	}
}

func (c *computation) notify(kind, reason, note string) {
	c.plan.Notices = append(c.plan.Notices, action.Notice{
		Type:       kind,
		Reason:     reason,
		Note:       note,
		WithStatus: true,
	})
}
