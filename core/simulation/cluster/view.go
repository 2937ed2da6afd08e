package cluster

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// View is what a cache shows of the world. It is valid until the world moves on; the objects in it
// stay valid and are read-only.
type View struct {
	world *World
	now   time.Time
	// past holds the objects that the view shows in an older state; nil where they did not exist yet.
	past map[string]map[types.NamespacedName]action.Object
	// cached shows pods as an operator's cache holds them.
	cached bool
	// gone are objects that the view still shows and the world no longer has, the latest first.
	gone map[string][]types.NamespacedName
}

// View shows every kind as it was lag(kind) events of this kind ago. A nil lag shows the present.
func (w *World) View(lag func(kind string) int) *View {
	v := &View{world: w, now: w.now}
	if lag == nil {
		return v
	}
	for _, kind := range w.Kinds() {
		if n := lag(kind); n > 0 {
			v.rewind(kind, n, "")
		}
	}
	return v
}

// Known returns what an actor can know at a moment that has seen so many events of each kind: these, and its own writes.
func (w *World) Known(actor string, seen map[string]int, now time.Time) *View {
	v := &View{world: w, now: now}
	for _, kind := range w.Kinds() {
		if seen, ok := seen[kind]; ok && seen < len(w.tables[kind].events) {
			v.rewind(kind, len(w.tables[kind].events)-seen, actor)
		}
	}
	return v
}

// rewind undoes the last n events of the kind, but leaves objects to which the actor wrote as its last write left them.
func (v *View) rewind(kind string, n int, but string) {
	t := v.world.tables[kind]
	past := map[types.NamespacedName]action.Object{}
	for i := len(t.events) - 1; i >= max(len(t.events)-n, 0); i-- {
		e := &t.events[i]
		past[KeyOf(e.Object)] = e.Old
	}
	for i := max(len(t.events)-n, 0); but != "" && i < len(t.events); i++ {
		switch e := &t.events[i]; {
		case e.Actor != but:
		case e.Type == Deleted:
			past[KeyOf(e.Object)] = nil
		default:
			past[KeyOf(e.Object)] = e.Object
		}
	}
	if v.past == nil {
		v.past = map[string]map[types.NamespacedName]action.Object{}
		v.gone = map[string][]types.NamespacedName{}
	}
	v.past[kind] = past
	for i := len(t.events) - 1; i >= max(len(t.events)-n, 0); i-- {
		key := KeyOf(t.events[i].Object)
		if t.events[i].Type == Deleted && past[key] != nil && t.objects[key] == nil {
			v.gone[kind] = append(v.gone[kind], key)
		}
	}
}

// Get returns the object of the kind, or the zero value when the view has none.
func Get[T action.Object](v *View, namespace, name string) T {
	kind := kindFor[T]()
	key := types.NamespacedName{Namespace: namespace, Name: name}
	o, _ := v.get(kind, key).(T)
	return o
}

// List returns every object of the kind: those that exist in the order of their creation, after those that exist in the
// view only.
func List[T action.Object](v *View) []T {
	kind := kindFor[T]()
	if v.world.tables[kind] == nil {
		return nil
	}
	stored := v.Objects(kind)
	list := make([]T, 0, len(stored))
	for _, o := range stored {
		if o, ok := v.show(o).(T); ok {
			list = append(list, o)
		}
	}
	return list
}

// Objects returns every object of the kind as it is stored, in the order of List.
func (v *View) Objects(kind string) []action.Object {
	t := v.world.tables[kind]
	if t == nil {
		return nil
	}
	list := make([]action.Object, 0, len(t.order)+len(v.gone[kind]))
	listed := map[types.NamespacedName]bool{}
	for _, key := range v.gone[kind] {
		if o := v.Stored(kind, key); o != nil && !listed[key] {
			listed[key] = true
			list = append(list, o)
		}
	}
	for _, key := range t.order {
		if o := v.Stored(kind, key); o != nil {
			list = append(list, o)
		}
	}
	return list
}

// ListOwned returns every object of the kind whose controller has the UID.
func ListOwned[T action.Object](v *View, owner types.UID) []T {
	var owned []T
	for _, o := range List[T](v) {
		if ControllerOf(o) == owner {
			owned = append(owned, o)
		}
	}
	return owned
}

func (v *View) get(kind string, key types.NamespacedName) action.Object {
	return v.show(v.Stored(kind, key))
}

func (v *View) show(o action.Object) action.Object {
	if v.cached {
		return v.world.cached(o)
	}
	return o
}

// Show makes the view show another state of an object of a kind that it shows as it was.
func (v *View) Show(o action.Object) {
	kind, key := KindOf(o), KeyOf(o)
	v.past[kind][key] = o
	if v.world.tables[kind].objects[key] == nil {
		v.gone[kind] = append(v.gone[kind], key)
	}
}

// Object returns the object of the kind, as Get does; nil when the view has none.
func (v *View) Object(kind string, key types.NamespacedName) action.Object { return v.get(kind, key) }

// Stored returns the object of the kind as it is stored, nil when the view has none.
func (v *View) Stored(kind string, key types.NamespacedName) action.Object {
	if o, ok := v.past[kind][key]; ok {
		return o
	}
	if t := v.world.tables[kind]; t != nil {
		return t.objects[key]
	}
	return nil
}

// Now returns the virtual time of the view.
func (v *View) Now() time.Time { return v.now }

// Owned returns the pods that the object with the UID controls, in any state.
func (v *View) Owned(owner types.UID) []*corev1.Pod { return ListOwned[*corev1.Pod](v, owner) }

// Active returns the object's pods that are neither terminating nor finished.
func (v *View) Active(owner types.UID) []*corev1.Pod {
	return v.owned(owner, 0, func(s podstate.State) bool { return s.Active })
}

// Available returns the object's active pods that have been ready for minReadySeconds.
func (v *View) Available(owner types.UID, minReadySeconds int32) []*corev1.Pod {
	return v.owned(owner, minReadySeconds, func(s podstate.State) bool { return s.Active && s.Available })
}

func (v *View) owned(owner types.UID, minReadySeconds int32, keep func(podstate.State) bool) []*corev1.Pod {
	return slices.DeleteFunc(v.Owned(owner), func(pod *corev1.Pod) bool {
		return !keep(podstate.Of(pod, v.Now(), minReadySeconds))
	})
}
