package simulate

import (
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
)

// View is what a cache shows of the world. It is valid until the world moves on; the objects in it
// stay valid and are read-only.
type View struct {
	world *World
	now   time.Time
	// operator looks; nil for somebody else.
	operator *Operator
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
	for _, kind := range w.kinds() {
		if n := lag(kind); n > 0 {
			v.rewind(kind, n, "")
		}
	}
	return v
}

// known returns what the operator can know when it sends a write: its last view and its own writes, at that moment.
func (w *World) known() *View {
	v := &View{world: w, now: w.now}
	if !w.sent.IsZero() {
		v.now = w.sent
	}
	for _, kind := range w.kinds() {
		if seen, ok := w.seen[kind]; ok && seen < len(w.tables[kind].events) {
			v.rewind(kind, len(w.tables[kind].events)-seen, OperatorActor)
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
		past[keyOf(e.Object)] = e.Old
	}
	for i := max(len(t.events)-n, 0); but != "" && i < len(t.events); i++ {
		switch e := &t.events[i]; {
		case e.Actor != but:
		case e.Type == Deleted:
			past[keyOf(e.Object)] = nil
		default:
			past[keyOf(e.Object)] = e.Object
		}
	}
	if v.past == nil {
		v.past = map[string]map[types.NamespacedName]action.Object{}
		v.gone = map[string][]types.NamespacedName{}
	}
	v.past[kind] = past
	for i := len(t.events) - 1; i >= max(len(t.events)-n, 0); i-- {
		key := keyOf(t.events[i].Object)
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
	stored := v.list(kind)
	list := make([]T, 0, len(stored))
	for _, o := range stored {
		if o, ok := v.show(o).(T); ok {
			list = append(list, o)
		}
	}
	return list
}

// list returns every object of the kind as it is stored, in the order of List.
func (v *View) list(kind string) []action.Object {
	t := v.world.tables[kind]
	if t == nil {
		return nil
	}
	list := make([]action.Object, 0, len(t.order)+len(v.gone[kind]))
	listed := map[types.NamespacedName]bool{}
	for _, key := range v.gone[kind] {
		if o := v.stored(kind, key); o != nil && !listed[key] {
			listed[key] = true
			list = append(list, o)
		}
	}
	for _, key := range t.order {
		if o := v.stored(kind, key); o != nil {
			list = append(list, o)
		}
	}
	return list
}

// ListOwned returns every object of the kind whose controller has the UID.
func ListOwned[T action.Object](v *View, owner types.UID) []T {
	var owned []T
	for _, o := range List[T](v) {
		if controllerOf(o) == owner {
			owned = append(owned, o)
		}
	}
	return owned
}

func (v *View) get(kind string, key types.NamespacedName) action.Object {
	return v.show(v.stored(kind, key))
}

func (v *View) show(o action.Object) action.Object {
	if v.cached {
		return v.world.cached(o)
	}
	return o
}

func (v *View) stored(kind string, key types.NamespacedName) action.Object {
	if o, ok := v.past[kind][key]; ok {
		return o
	}
	if t := v.world.tables[kind]; t != nil {
		return t.objects[key]
	}
	return nil
}

func controllerOf(o action.Object) types.UID {
	refs := o.GetOwnerReferences()
	for i := range refs {
		if refs[i].Controller != nil && *refs[i].Controller {
			return refs[i].UID
		}
	}
	return ""
}

func kindFor[T action.Object]() string { return reflect.TypeFor[T]().Elem().Name() }
