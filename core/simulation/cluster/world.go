package simulate

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
)

// Actors that write to the world. Tests may use any other word for users and foreign controllers.
const (
	OperatorActor  = "operator"
	KubeletActor   = "kubelet"
	SchedulerActor = "scheduler"
	CollectorActor = "collector"
	BinderActor    = "binder"
	NodeActor      = "nodes" // the controller that evicts pods of silent nodes
	UserActor      = "user"
)

// Options describe a world. The zero value is a world with three nodes, random delays and events out of order.
type Options struct {
	// Seed decides everything that is left to chance.
	Seed uint64
	// Calm makes every delay a second, every status complete, and nothing happen out of order.
	Calm bool
	// Nodes is the number of nodes; 0 means 3.
	Nodes int
	// Images says how images behave that are not simply good, by their names.
	Images map[string]Image
	// Unschedulable says which pods no node takes; nil takes all.
	Unschedulable func(*corev1.Pod) bool
	// Flaps is the probability that a container that became ready fails its probe once more.
	Flaps float64
	// Admission refuses writes of everybody but the world's own actors, as a webhook would: an error
	// without a status of its own becomes the reason of a Forbidden. It sees Deleted where a deletion is about to begin.
	Admission func(*World, Event) error
	// JudgesResizes has the server refuse resizes to more than a node has, as from Kubernetes 1.36 on.
	JudgesResizes bool
	// Memory is what containers use with images that do not say so themselves.
	Memory resource.Quantity
	// DetectMutation keeps a copy of every object, so that a planner that changes what it reads is
	// found out when the world has settled.
	DetectMutation bool
}

// EventType is what a watch reports.
type EventType string

// The types of events.
const (
	Added    EventType = "Added"
	Modified EventType = "Modified"
	Deleted  EventType = "Deleted"
)

// Event is one successful write that changed something.
type Event struct {
	Type EventType
	// Actor is who wrote.
	Actor string
	// Time is the virtual moment.
	Time time.Time
	// Kind is the kind of the object, such as "Pod".
	Kind string
	// Object is the object after the write; for Deleted its last state. Read-only.
	Object action.Object
	// Old is the object before the write, nil for Added. Read-only.
	Old action.Object
	// Subresource is "", "status", "resize" or "binding".
	Subresource string
}

// World is the store of an API server and everybody who lives on it. Stored objects are never
// changed, only replaced, so that views and events can share them.
type World struct {
	options    Options
	rng        *rand.Rand
	begin, now time.Time
	version    int64
	uids       int
	addresses  int
	tables     map[string]*table
	queue      queue
	runtimes   map[types.UID]*podRuntime
	hooks      []func(*World, Event)
	limits     []limit
	writes     map[string]int
	noops      map[string]int
	story      []string
	violations []string
	copies     []action.Object // of the objects of all events, with DetectMutation
	originals  []action.Object
	silent     map[string]bool      // nodes whose kubelet does not report
	full       map[string]time.Time // until when nodes reject the pods that come
	agents     *agents
	operators  uint64
	inDryRun   bool                        // what is written is a dry run
	seen       map[string]int              // events of a kind that the operator's last view contained
	sent       time.Time                   // when the operator sent the request that is under way
	edits      int                         // of users, so far as they were announced
	acts       int                         // of foreign actors
	passes     int                         // of operators
	without    cuts                        // what is left out to tell a shorter story
	shown      map[*corev1.Pod]*corev1.Pod // what caches show of pods
}

// table holds the objects of one kind, in the order of their creation, and what happened to them.
type table struct {
	objects map[types.NamespacedName]action.Object
	order   []types.NamespacedName
	events  []Event
}

// New makes a world with objects that exist from the start. They keep their UIDs and status.
func New(options Options, objects ...action.Object) *World {
	if options.Nodes == 0 {
		options.Nodes = 3
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w := &World{
		options: options, begin: start, now: start,
		rng:      rand.New(rand.NewPCG(options.Seed, 1)), //nolint:gosec // a simulation needs no secrecy
		tables:   map[string]*table{},
		runtimes: map[types.UID]*podRuntime{},
		silent:   map[string]bool{},
		full:     map[string]time.Time{},
		shown:    map[*corev1.Pod]*corev1.Pod{},
		writes:   map[string]int{}, noops: map[string]int{},
	}
	for _, o := range objects {
		w.Add(o)
	}
	return w
}

// Add puts an object into the world as if it had always been there.
func (w *World) Add(o action.Object) action.Object {
	o = o.DeepCopyObject().(action.Object)
	if o.GetUID() == "" {
		o.SetUID(w.newUID())
	}
	if o.GetGeneration() == 0 && hasGeneration(o) {
		o.SetGeneration(1)
	}
	if created := o.GetCreationTimestamp(); created.IsZero() {
		o.SetCreationTimestamp(w.stamp())
	}
	return w.commit(Event{Type: Added, Actor: UserActor, Object: o})
}

// Now returns the virtual moment.
func (w *World) Now() time.Time { return w.now }

// OnEvent calls hook after every write that changed something.
func (w *World) OnEvent(hook func(*World, Event)) { w.hooks = append(w.hooks, hook) }

// Writes returns the number of writes of the actor that changed something.
func (w *World) Writes(actor string) int { return w.writes[actor] }

// NoOps returns the number of writes of the actor that changed nothing.
func (w *World) NoOps(actor string) int { return w.noops[actor] }

// Violate records that something happened that must not.
func (w *World) Violate(format string, args ...any) {
	text := fmt.Sprintf("t=%s %s", w.now.Sub(w.begin).Truncate(time.Second), fmt.Sprintf(format, args...))
	w.violations = append(w.violations, text)
	w.Tell("VIOLATION", "%s", text)
}

// Violations returns the violations so far.
func (w *World) Violations() []string { return w.violations }

// Latest returns the object as it is now, or nil.
func (w *World) Latest(o action.Object) action.Object {
	t := w.tables[KindOf(o)]
	if t == nil {
		return nil
	}
	return t.objects[keyOf(o)]
}

// Pods returns all pods in the order of their creation.
func (w *World) Pods() []*corev1.Pod { return List[*corev1.Pod](w.View(nil)) }

// commit stores the outcome of a write and lets everybody know.
func (w *World) commit(e Event) action.Object {
	if w.inDryRun {
		return e.Object
	}
	before := w.measure(e.Actor)
	w.version++
	e.Kind, e.Time = KindOf(e.Object), w.now
	e.Object.SetResourceVersion(strconv.FormatInt(w.version, 10))
	t := w.table(e.Kind)
	key := keyOf(e.Object)
	switch e.Type {
	case Added:
		t.order = append(t.order, key)
		t.objects[key] = e.Object
	case Modified:
		t.objects[key] = e.Object
	case Deleted:
		delete(t.objects, key)
		t.order = slices.DeleteFunc(t.order, func(k types.NamespacedName) bool { return k == key })
	}
	t.events = append(t.events, e)
	w.watchForChanges(e.Object)
	w.writes[e.Actor]++
	w.checkLimits(e, before)
	w.narrate(e)
	for _, hook := range w.hooks {
		hook(w, e)
	}
	w.react(e)
	return e.Object
}

// react starts what others do because of an event.
func (w *World) react(e Event) {
	if pod, ok := e.Object.(*corev1.Pod); ok {
		old, _ := e.Old.(*corev1.Pod)
		w.reactToPod(e, pod, old)
	}
	w.collectAfter(e)
}

func (w *World) table(kind string) *table {
	t := w.tables[kind]
	if t == nil {
		t = &table{objects: map[types.NamespacedName]action.Object{}}
		w.tables[kind] = t
	}
	return t
}

func (w *World) newUID() types.UID {
	w.uids++
	return types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012d", uint32(w.options.Seed), w.uids))
}

// stamp returns the moment as the API shows it: in whole seconds.
func (w *World) stamp() metav1.Time { return metav1.NewTime(w.now.Truncate(time.Second)) }

// delay returns a random time up to most, in milliseconds; in a calm world it is a second.
func (w *World) delay(most time.Duration) time.Duration {
	if w.options.Calm {
		return time.Second
	}
	return time.Duration(w.rng.Int64N(int64(most/time.Millisecond))+1) * time.Millisecond
}

// chance returns true with the probability, never in a calm world.
func (w *World) chance(probability float64) bool {
	return !w.options.Calm && probability > 0 && w.rng.Float64() < probability
}

func keyOf(o action.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// KindOf names the kind of an object also where its type meta is empty, as it is in caches.
func KindOf(o action.Object) string {
	switch o.(type) {
	case *corev1.Pod:
		return "Pod"
	case *corev1.PersistentVolumeClaim:
		return "PersistentVolumeClaim"
	case *appsv1.ControllerRevision:
		return "ControllerRevision"
	}
	if kind := o.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	return reflect.TypeOf(o).Elem().Name()
}

// isBuiltIn says that the kind is compiled into the server, so that it knows strategic merges.
func isBuiltIn(o action.Object) bool {
	return strings.HasPrefix(reflect.TypeOf(o).Elem().PkgPath(), "k8s.io/api/")
}

// hasGeneration reports whether the server counts changes of the spec.
func hasGeneration(o action.Object) bool {
	switch o.(type) {
	case *corev1.PersistentVolumeClaim, *appsv1.ControllerRevision, *corev1.Node:
		return false
	}
	return true
}
