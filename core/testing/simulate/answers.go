package simulate

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
)

// answers are what the server returned to writes that the cache may not show yet, as in package freshness.
type answers map[string]map[types.NamespacedName]answer

type answer struct {
	object  action.Object
	at      int // the number of events of its kind by which a view shows the write
	deleted bool
}

// answered says that later views are to show an acknowledged write. What is not shown from its answer they must contain.
func (o *Operator) answered(r operator.Request, returned action.Object, since int) {
	kind := cluster.KindOf(r.Object)
	a := answer{
		object:  returned,
		deleted: r.Verb == action.Delete,
		at:      o.world.eventOf(r.Object, since),
	}
	if !isShown(r) {
		o.written[kind] = max(o.written[kind], len(o.world.Events(kind)))
		return
	}
	if a.deleted {
		now := metav1.NewTime(o.world.Now())
		a.object = r.Object.DeepCopyObject().(action.Object)
		a.object.SetDeletionTimestamp(&now)
	}
	if o.answers == nil {
		o.answers = answers{}
	}
	if o.answers[kind] == nil {
		o.answers[kind] = map[types.NamespacedName]answer{}
	}
	o.answers[kind][cluster.KeyOf(r.Object)] = a
}

// eventOf is the number of events with the operator's first one about the object since a number.
func (w *World) eventOf(o action.Object, since int) int {
	events := w.Events(cluster.KindOf(o))
	for i := since; i < len(events); i++ {
		if events[i].Actor == cluster.OperatorActor && cluster.KeyOf(events[i].Object) == cluster.KeyOf(o) {
			return i + 1
		}
	}
	return since
}

// isShown says whether a write is shown from its answer: new objects, pods and statuses are, and pods and claims that are
// on their way out.
func isShown(r operator.Request) bool {
	if r.Verb == action.Create {
		return true
	}
	switch r.Object.(type) {
	case *corev1.Pod:
		return true
	case *corev1.PersistentVolumeClaim:
		return r.Verb == action.Delete
	}
	return r.Subresource == "status"
}

// showIn puts into a view what it does not show yet, and forgets the rest. seen is how many events of a kind it contains.
func (a answers) showIn(v *cluster.View, seen map[string]int) {
	for kind, all := range a {
		for _, key := range slices.SortedFunc(maps.Keys(all), byName) {
			one := all[key]
			if one.at <= seen[kind] || one.seenIn(v.Stored(kind, key)) {
				delete(all, key)
				continue
			}
			v.Show(one.object)
		}
	}
}

// seenIn says that an object of the view shows the write, or what came after it.
func (a answer) seenIn(stored action.Object) bool {
	if stored == nil || versionOf(stored) < versionOf(a.object) {
		return false
	}
	return !a.deleted || stored.GetUID() != a.object.GetUID() || stored.GetDeletionTimestamp() != nil
}

func byName(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) }

func versionOf(o action.Object) int64 {
	if o.GetResourceVersion() == "" { // which goes along with another one, in any version
		return 0
	}
	version, err := strconv.ParseInt(o.GetResourceVersion(), 10, 64)
	if err != nil {
		panic("a version that is no number: " + o.GetResourceVersion())
	}
	return version
}
