package cluster

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
)

// World is the store of an API server. Its clock stands still until somebody moves it. Stored objects are never changed,
// only replaced, so that views and events can share them.
type World struct {
	// Options describe the world. They may be changed until the first event.
	Options Options

	rng        *rand.Rand
	begin, now time.Time
	version    int64
	uids       int
	tables     map[string]*table
	queue      queue
	around     []func(actor string) func(Event)
	hooks      []func(Event)
	reactions  []func(Event)
	writes     map[string]int
	noops      map[string]int
	story      []string
	violations []string
	copies     []action.Object // of the objects of all events, with DetectMutation
	originals  []action.Object
	inDryRun   bool                        // what is written is a dry run
	shown      map[*corev1.Pod]*corev1.Pod // what caches show of pods
}

// table holds the objects of one kind, in the order of their creation, and what happened to them.
type table struct {
	objects map[types.NamespacedName]action.Object
	order   []types.NamespacedName
	events  []Event
}

// New makes an empty world.
func New(options Options) *World {
	if options.Nodes == 0 {
		options.Nodes = 3
	}
	start := options.Begin
	if start.IsZero() {
		start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return &World{
		Options: options,
		begin:   start,
		now:     start,
		rng:     rand.New(rand.NewPCG(options.Seed, 1)), //nolint:gosec // a simulation needs no secrecy
		tables:  map[string]*table{},
		shown:   map[*corev1.Pod]*corev1.Pod{},
		writes:  map[string]int{},
		noops:   map[string]int{},
	}
}

// Add puts an object into the world as if it had always been there. It keeps its UID and its status.
func (w *World) Add(o action.Object) action.Object {
	o = o.DeepCopyObject().(action.Object)
	if o.GetUID() == "" {
		o.SetUID(w.NewUID())
	}
	if o.GetGeneration() == 0 && hasGeneration(o) {
		o.SetGeneration(1)
	}
	if created := o.GetCreationTimestamp(); created.IsZero() {
		o.SetCreationTimestamp(w.Stamp())
	}
	return w.Commit(Event{Type: Added, Actor: UserActor, Object: o})
}

// Cluster returns the world itself: worlds that embed it offer more.
func (w *World) Cluster() *World { return w }

// Now returns the virtual moment.
func (w *World) Now() time.Time { return w.now }

// Since returns how long ago a moment was: a world is a clock, too.
func (w *World) Since(t time.Time) time.Duration { return w.now.Sub(t) }

// Begin returns the moment at which the world began.
func (w *World) Begin() time.Time { return w.begin }

// OnEvent calls hook after every write that changed something.
func (w *World) OnEvent(hook func(Event)) { w.hooks = append(w.hooks, hook) }

// AroundWrites calls before with the actor of every write before it is stored, and what that returns right after.
func (w *World) AroundWrites(before func(actor string) (after func(Event))) {
	w.around = append(w.around, before)
}

// React calls a part of the cluster after every write that changed something, when all hooks of OnEvent have run.
func (w *World) React(part func(Event)) { w.reactions = append(w.reactions, part) }

// Events returns what happened to the objects of a kind. Read-only.
func (w *World) Events(kind string) []Event {
	if t := w.tables[kind]; t != nil {
		return t.events
	}
	return nil
}

// Kinds returns the kinds of which the world has or had objects, in order.
func (w *World) Kinds() []string { return slices.Sorted(maps.Keys(w.tables)) }

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
	return t.objects[KeyOf(o)]
}

// Pods returns all pods in the order of their creation.
func (w *World) Pods() []*corev1.Pod { return List[*corev1.Pod](w.View(nil)) }

// Commit stores the outcome of a write and lets everybody know. Parts of the cluster write so, past the rules that the
// server has for others.
func (w *World) Commit(e Event) action.Object {
	if w.inDryRun {
		return e.Object
	}
	var after []func(Event)
	for _, before := range w.around {
		after = append(after, before(e.Actor))
	}
	e.Kind, e.Time = KindOf(e.Object), w.now
	t := w.table(e.Kind)
	w.lastState(t, e)
	w.version++
	e.Object.SetResourceVersion(strconv.FormatInt(w.version, 10))
	key := KeyOf(e.Object)
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
	w.WatchForChanges(e.Object)
	w.writes[e.Actor]++
	for _, done := range after {
		done(e)
	}
	w.narrate(e)
	for _, hook := range w.hooks {
		hook(e)
	}
	for _, part := range w.reactions {
		part(e)
	}
	w.collectAfter(e)
	return e.Object
}

// lastState shows watchers a pod with a grace period of 0 before it is gone: the API server writes that first.
func (w *World) lastState(t *table, e Event) {
	if _, isPod := e.Object.(*corev1.Pod); !isPod || e.Type != Deleted || noGrace(e.Old) {
		return
	}
	w.version++
	e.Type, e.Object = Modified, e.Object.DeepCopyObject().(action.Object)
	e.Object.SetResourceVersion(strconv.FormatInt(w.version, 10))
	t.events = append(t.events, e)
}

// noGrace reports whether the time that a deleted object has to end is over.
func noGrace(o action.Object) bool {
	grace := o.GetDeletionGracePeriodSeconds()
	return o.GetDeletionTimestamp() != nil && grace != nil && *grace == 0
}

func (w *World) table(kind string) *table {
	t := w.tables[kind]
	if t == nil {
		t = &table{objects: map[types.NamespacedName]action.Object{}}
		w.tables[kind] = t
	}
	return t
}

// NewUID returns the UID of a new object.
func (w *World) NewUID() types.UID {
	w.uids++
	return types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012d", uint32(w.Options.Seed), w.uids))
}

// Stamp returns the moment as the API shows it: in whole seconds.
func (w *World) Stamp() metav1.Time { return metav1.NewTime(w.now.Truncate(time.Second)) }

// Delay returns a random time up to most, in milliseconds; in a calm world it is a second.
func (w *World) Delay(most time.Duration) time.Duration {
	if w.Options.Calm {
		return time.Second
	}
	return time.Duration(w.rng.Int64N(int64(most/time.Millisecond))+1) * time.Millisecond
}

// Takes returns how long a work takes: a random time up to most, unless the options say it.
func (w *World) Takes(work Work, most time.Duration) time.Duration {
	if w.Options.Takes != nil {
		return w.Options.Takes(work)
	}
	return w.Delay(most)
}

// Pick returns a number at random, from 0 and below n.
func (w *World) Pick(n int) int { return w.rng.IntN(n) }

// Chance returns true with the probability, never in a calm world.
func (w *World) Chance(probability float64) bool {
	return !w.Options.Calm && probability > 0 && w.rng.Float64() < probability
}

// IsTrue reports whether a condition of the pod is True.
func IsTrue(pod *corev1.Pod, t corev1.PodConditionType) bool {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == t {
			return pod.Status.Conditions[i].Status == corev1.ConditionTrue
		}
	}
	return false
}

// Pod returns the pod of that name when it still has the UID.
func (w *World) Pod(key types.NamespacedName, uid types.UID) *corev1.Pod {
	pod := Get[*corev1.Pod](w.View(nil), key.Namespace, key.Name)
	if pod == nil || pod.UID != uid {
		return nil
	}
	return pod
}
