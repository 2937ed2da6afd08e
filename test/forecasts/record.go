package forecasts

import (
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podstate"

	"github.com/flotilla-project/flotilla/kustomize/forecast"

	"github.com/flotilla-project/flotilla/test/story"
)

// record has the changes of the pods of a workload.
type record struct {
	InPlace, Recreated, Added, Removed int
	// Lowest is the fewest available pods, and Most the most pods at once, without terminating ones.
	Lowest, Most int
	// Order has the pods in the order in which their update in place or their deletion began.
	Order []string
}

// recorder watches the pods of a workload.
type recorder struct {
	stop     func()
	owner    types.UID
	minReady int32

	pods                    story.Pods
	inPlace, deleted, added map[types.UID]bool
	record                  record
	began, changed          time.Time
}

// newRecorder records the pods of a workload from now on.
func newRecorder(t *testing.T, w story.World, set client.Object) *recorder {
	t.Helper()
	r := &recorder{
		owner:    set.GetUID(),
		minReady: forecast.MinReadySeconds(set),
		pods:     story.Pods{},
		inPlace:  map[types.UID]bool{},
		deleted:  map[types.UID]bool{},
		added:    map[types.UID]bool{},
		began:    time.Now(),
	}
	list := w.Pods(t, set.GetNamespace())
	for i := range list {
		r.pods[list[i].UID] = &list[i]
	}
	r.changed = r.began
	r.record.Lowest, r.record.Most = r.count(r.pods)
	r.stop = w.Always(t, set.GetNamespace(), r.see)
	return r
}

// end returns the record, and the time until the last change.
func (r *recorder) end() (record, time.Duration) {
	r.stop()
	n := &r.record
	n.InPlace = len(r.inPlace)
	n.Recreated = min(len(r.deleted), len(r.added))
	n.Added = len(r.added) - n.Recreated
	n.Removed = len(r.deleted) - n.Recreated
	return *n, r.changed.Sub(r.began)
}

// see takes the pods in as they are after a change of one of them.
func (r *recorder) see(pods story.Pods) error {
	for uid, pod := range pods {
		old, is := r.pods[uid]
		switch {
		case old == pod || !r.owns(pod):
			continue
		case !is:
			r.added[uid] = true
		case pod.DeletionTimestamp != nil && old.DeletionTimestamp == nil:
			r.begins(r.deleted, pod)
		case pod.Labels[contract.RevisionLabel] != old.Labels[contract.RevisionLabel]:
			r.begins(r.inPlace, pod)
		}
		r.changed = time.Now()
	}
	for uid, pod := range r.pods {
		if _, is := pods[uid]; !is && pod.DeletionTimestamp == nil && r.owns(pod) {
			r.begins(r.deleted, pod)
			r.changed = time.Now()
		}
	}
	r.pods = maps.Clone(pods)
	available, active := r.count(pods)
	r.record.Lowest = min(r.record.Lowest, available)
	r.record.Most = max(r.record.Most, active)
	return nil
}

// begins notes the update in place or the deletion of a pod, once.
func (r *recorder) begins(all map[types.UID]bool, pod *corev1.Pod) {
	if !all[pod.UID] {
		all[pod.UID] = true
		r.record.Order = append(r.record.Order, pod.Name)
	}
}

func (r *recorder) owns(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && owner.UID == r.owner
}

func (r *recorder) count(pods story.Pods) (available, active int) {
	now := time.Now()
	for _, pod := range pods {
		if s := podstate.Of(pod, now, r.minReady); s.Active && r.owns(pod) {
			active++
			if s.Available {
				available++
			}
		}
	}
	return available, active
}
